defmodule ATS.MistakesTest do
  # The words about mistakes that are made often, as a page of the documentation: it is written if
  # ATS_WRITE_DOCS is set. If it is not, each call must fail as the page says.
  use ExUnit.Case

  # Processes that do not start would be logged.
  setup do
    %{level: level} = :logger.get_primary_config()
    :ok = :logger.set_primary_config(:level, :none)
    on_exit(fn -> :logger.set_primary_config(:level, level) end)
  end

  @page Path.join(__DIR__, "../../docs/use/mistakes-in-elixir.md")

  @head """
  # What errors in Elixir say

  Calls of `ATS.Table`, `ATS.DiskTable`, `ATS.Cache` and `ATS.Query` that fail, and the exceptions.
  What functions of `:ats` and `:dats` say is [on a page of its own](mistakes.md).

  `table` is a struct of `ATS.Table.new/2`, and `:users` a cache; there is no table `:nobody`.

  `Enum` takes no name of a table, as it takes no atom: `ATS.Table.count(:prices)` and
  `ATS.Table.stream(:prices)` do, and `ATS.Table.whereis(:prices)` is the struct for `Enum`.

  This page is written by `make functions`, and `make test-deep` fails if it is out of date.
  """

  @mistakes [
    {"Tables and caches",
     [
       "ATS.Table.start_link([:set])",
       "ATS.Table.count(:nobody)",
       "ATS.Table.get(:nobody, :a)",
       "Enum.to_list(ATS.Table.range(table, :a, :b))",
       "ATS.Table.changes(table, active: 5)",
       "ATS.DiskTable.start_link(file: \"prices\")",
       "ATS.DiskTable.start_link(name: :prices, type: :list)",
       "ATS.Cache.start_link(name: :small, limt: 5)",
       "ATS.Cache.start_link(name: :small, type: :bag)",
       "ATS.Cache.fetch(:users, 1, fn -> :ann end)",
       "ATS.Cache.incr(:users, :ann)"
     ]},
    {"Match specifications",
     [
       "match_spec do {k, _} when String.length(k) > 1 -> k end",
       "match_spec do {k, _} when is_even(k) -> k end",
       "match_spec do {k, _} -> v end",
       "match_spec do [k] -> k end",
       "match_spec do {k, %{key => v}} -> v end",
       "match_spec do k, v -> k end",
       "match_spec do {k, <<a, _::binary>>} -> a end",
       "match_spec do {k, v} -> k ++ v end",
       "match_spec do: 1"
     ]}
  ]

  test "the page says what calls say" do
    table = ATS.Table.new(:t, [:set, :public])
    :ok = ATS.Table.put(table, :text, "one")
    {:ok, _} = ATS.Cache.start_link(name: :users)
    :ok = ATS.Cache.put(:users, :ann, "one")
    sections = for {title, calls} <- @mistakes, do: section(title, calls, table)
    page = IO.iodata_to_binary([@head | sections])

    if System.get_env("ATS_WRITE_DOCS"),
      do: File.write!(@page, page),
      else: assert(File.read!(@page) == page)
  end

  defp section(title, calls, table) do
    lines = for call <- calls, do: line(call, said(call, table))
    ["\n## ", title, "\n\n| call | exception | text |\n|---|---|---|\n", lines]
  end

  defp line(call, {exception, text}) do
    cell = &(&1 |> String.replace("|", "\\|") |> String.replace(~r/\s+/, " "))
    text = text |> String.replace("`", "'") |> String.trim()
    ["| `", cell.(call), "` | `", inspect(exception), "` | ", cell.(text), " |\n"]
  end

  test "there are ways for the name of a table" do
    :ats.new(:prices, [:named_table])
    true = :ats.insert(:prices, [{:pear, 40}, {:apple, 30}])
    assert_raise Protocol.UndefinedError, fn -> Enum.count(:prices) end
    assert ATS.Table.count(:prices) == 2
    assert Enum.count(ATS.Table.whereis(:prices)) == 2
    assert :prices |> ATS.Table.stream() |> Enum.count() == 2
  end

  # What a supervisor would tell of a table that does not start is what the call returns.
  defp said(call, table) do
    Process.flag(:trap_exit, true)

    try do
      Code.eval_string("import ATS.Query\n" <> call, table: table)
    rescue
      error in CompileError -> {CompileError, error.description}
      error -> {error.__struct__, Exception.message(error)}
    else
      {{:error, {%{__struct__: kind} = error, stack}}, _} when is_list(stack) ->
        {kind, Exception.message(error)}

      {value, _} ->
        flunk("#{call} returns #{inspect(value)}")
    end
  end
end
