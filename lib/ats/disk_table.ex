defmodule ATS.DiskTable do
  @moduledoc """
  A table of `:dats` as a child of a supervisor, and as a source of streams.

      children = [
        {ATS.DiskTable, name: :prices, file: "/var/lib/shop/prices", type: :ordered_set}
      ]

  The functions of `:dats` take the name, from any process:

      :ok = :dats.insert(:prices, [{:apple, 30}, {:pear, 40}])
      :prices |> ATS.DiskTable.range(:b, :z) |> Enum.to_list()   #=> [{:pear, 40}]

  The table is open as long as the process. It is closed when the process ends, also if it is
  killed, and opened again when the supervisor starts it again.
  """

  use GenServer

  @chunk 100

  @doc """
  Starts a process that opens a table. The options are those of `:dats.open_file/2`, and `name: name`
  is required. Without `file: directory` the name is the directory.
  """
  @spec start_link(keyword()) :: GenServer.on_start()
  def start_link(options) do
    {name, options} = take_name(options)
    GenServer.start_link(__MODULE__, {name, options})
  end

  @doc "Describes the process of `start_link/1` to a supervisor, which tells children by the name."
  def child_spec(options) do
    {name, _} = take_name(options)
    # The table has time to bring its last writes to disk.
    %{id: {__MODULE__, name}, start: {__MODULE__, :start_link, [options]}, shutdown: :infinity}
  end

  defp take_name(options) do
    case Keyword.pop(options, :name) do
      {name, rest} when is_atom(name) and name != nil -> {name, rest}
      _ -> raise ArgumentError, "ATS.DiskTable needs the option :name: #{inspect(options)}"
    end
  end

  @impl true
  def init({name, options}) do
    Process.flag(:trap_exit, true)

    case :dats.open_file(name, options) do
      {:ok, ^name} -> {:ok, name}
      {:error, reason} -> {:stop, reason}
    end
  rescue
    error in ArgumentError -> {:stop, {error, __STACKTRACE__}}
  end

  @impl true
  def terminate(_reason, name), do: :dats.close(name)

  @doc "Streams all objects, each part as of the moment at which it is read."
  @spec stream(:dats.tab_name()) :: Enumerable.t()
  def stream(name), do: select(name, [{:_, [], [:"$_"]}])

  @doc "Streams the results of a match specification, see `ATS.Query`."
  @spec select(:dats.tab_name(), :ats.match_spec()) :: Enumerable.t()
  def select(name, spec), do: parts(fn -> :dats.select(name, spec, @chunk) end)

  @doc """
  Streams the objects of an ordered table with keys from `low` to `high`, in their order. The
  options are those of `:dats.range/4` but the limit.
  """
  @spec range(:dats.tab_name(), term(), term(), list()) :: Enumerable.t()
  def range(name, low, high, options \\ []),
    do: parts(fn -> :dats.range(name, low, high, [{:limit, @chunk} | options]) end)

  defp parts(first) do
    Stream.resource(
      fn -> first end,
      fn more ->
        case more.() do
          :"$end_of_table" -> {:halt, more}
          {:error, _} = failed -> raise List.to_string(:dats.format_error(failed))
          {objects, continuation} -> {objects, fn -> :dats.select(continuation) end}
        end
      end,
      fn _ -> :ok end
    )
  end
end
