defmodule ATS.Cache do
  @moduledoc """
  A cache of values by their keys, as a child of a supervisor.

      children = [
        {ATS.Cache, name: :users, ttl: :timer.minutes(5), limit: 10_000}
      ]

      ATS.Cache.fetch(:users, 42, &load_user/1)
      ATS.Cache.put(:users, 43, user, ttl: 1_000)
      ATS.Cache.get(:users, 43)

  A value is gone at its deadline, for everybody. With a limit, values that are not read go first
  (S3-FIFO). A value that is missing is made once, however many processes fetch it at the same time.

  A cache is a table of `:ats` with the objects `{key, value}`. Its functions run in the calling
  process and wait for no other one; the process of the cache does nothing but own the table. So all
  functions of `:ats` work on it, too: `:ats.range/3` of an `:ordered_set`, `:ats.snapshot/1`, match
  specifications.

  The page "Moving from other caches" has the functions of Cachex, ConCache and Nebulex.
  """

  use GenServer

  @typedoc "A cache, by its name or the identifier of its table."
  @type t :: :ats.table()

  @typedoc """
  The time for which a value is there, in milliseconds. `:keep` is the time that is left to the
  value that is replaced.
  """
  @type ttl :: pos_integer() | :infinity | :keep

  @doc """
  Starts a cache. It ends with the process.

    * `:name` - an atom, which is required
    * `:ttl` - the time of values, in milliseconds: since they were written, or with `{:idle, ms}`
      since they were written or read; with `{:spread, ms, percent}` it is up to so many percent
      shorter, so that they do not expire together. The default is `:infinity`.
    * `:limit` - the most values. The default is `:infinity`.
    * `:memory` - the most bytes of memory, without the content of large binaries. The default is
      `:infinity`.
    * `:evicted` - a process that is told of the values that expire or go for a limit, by messages
      `{:"ATS-EVICTED", table, reason, objects_or_number}`; see `:ats.new/2`
    * `:type` - `:set`, which is the default, or `:ordered_set`
  """
  @spec start_link(keyword()) :: GenServer.on_start()
  def start_link(options) do
    name = Keyword.fetch!(options, :name)
    GenServer.start_link(__MODULE__, {name, table_options(options)})
  end

  @doc "Describes a cache to a supervisor, which tells caches by their names."
  def child_spec(options) do
    name = Keyword.fetch!(options, :name)
    %{id: {__MODULE__, name}, start: {__MODULE__, :start_link, [options]}}
  end

  @impl true
  def init({name, options}), do: {:ok, :ats.new(name, options)}

  defp table_options(options) do
    limits = [ttl: :infinity, limit: :infinity, memory: :infinity, evicted: :none]
    defaults = [:name, type: :set] ++ limits
    known = Keyword.validate!(options, defaults)

    unless known[:type] in [:set, :ordered_set] do
      raise ArgumentError, "the type is :set or :ordered_set, not #{inspect(known[:type])}"
    end

    limits = [ttl: known[:ttl], max_objects: known[:limit], max_memory: known[:memory]]
    [:named_table, :public, known[:type], evicted: known[:evicted]] ++ limits
  end

  @doc "Returns the value of a key, or the default."
  @spec get(t(), term(), term()) :: term()
  def get(cache, key, default \\ nil), do: :ats.lookup_element(cache, key, 2, default)

  @doc """
  Returns the value of a key, which `fun` makes if it is missing: once, however many processes
  fetch it at the same time. If `fun` fails, its caller gets the exception, and the next one calls
  its own.

  The option `:ttl` is the time of a new value.
  """
  @spec fetch(t(), key, (key -> value), ttl: ttl()) :: value when key: term(), value: term()
  def fetch(cache, key, fun, options \\ [])
  def fetch(cache, key, fun, []), do: :ats.fetch(cache, key, fun)
  def fetch(cache, key, fun, options), do: :ats.fetch(cache, key, fun, Map.new(options))

  @doc "Puts a value. The option `:ttl` is its time, instead of that of the cache."
  @spec put(t(), term(), term(), ttl: ttl()) :: :ok
  def put(cache, key, value, options \\ []) do
    insert(cache, {key, value}, options)
    :ok
  end

  @doc "Puts all values of a map or a list of pairs, at one moment."
  @spec put_all(t(), Enumerable.t(), ttl: ttl()) :: :ok
  def put_all(cache, pairs, options \\ []) do
    insert(cache, Enum.map(pairs, fn {key, value} -> {key, value} end), options)
    :ok
  end

  defp insert(cache, objects, []), do: :ats.insert(cache, objects)
  defp insert(cache, objects, options), do: :ats.insert(cache, objects, Map.new(options))

  @doc "Puts a value if the key has none. Returns `true` if it did: one of several processes does."
  @spec put_new(t(), term(), term(), ttl: ttl()) :: boolean()
  def put_new(cache, key, value, options \\ [])
  def put_new(cache, key, value, []), do: :ats.insert_new(cache, {key, value})

  def put_new(cache, key, value, options) do
    :ats.insert_new(cache, {key, value}, Map.new(options))
  end

  @doc "Adds to a number, which is 0 if it is missing. Returns the new one. Keeps the deadline."
  @spec incr(t(), term(), integer()) :: integer()
  def incr(cache, key, by \\ 1), do: :ats.update_counter(cache, key, {2, by}, {key, 0})

  @doc "Replaces the value of a key and keeps its deadline. Returns `true` if there was a value."
  @spec replace(t(), term(), term()) :: boolean()
  def replace(cache, key, value), do: :ats.update_element(cache, key, {2, value})

  @doc "Removes a value."
  @spec delete(t(), term()) :: :ok
  def delete(cache, key) do
    :ats.delete(cache, key)
    :ok
  end

  @doc "Removes a value, and returns it, or the default. One of several processes gets it."
  @spec take(t(), term(), term()) :: term()
  def take(cache, key, default \\ nil) do
    case :ats.take(cache, key) do
      [{_, value}] -> value
      [] -> default
    end
  end

  @doc "Tells whether a key has a value."
  @spec has_key?(t(), term()) :: boolean()
  def has_key?(cache, key), do: :ats.member(cache, key)

  @doc "Returns the milliseconds that are left to a value, `:infinity`, or `nil` if there is none."
  @spec ttl(t(), term()) :: non_neg_integer() | :infinity | nil
  def ttl(cache, key) do
    case :ats.ttl(cache, key) do
      :undefined -> nil
      left -> left
    end
  end

  @doc "Begins the time of a value again, that of the cache. Returns `true` if there is a value."
  @spec touch(t(), term()) :: boolean()
  def touch(cache, key), do: :ats.touch(cache, key)

  @doc "Gives a value a time from now on. Returns `true` if there is a value."
  @spec expire(t(), term(), pos_integer() | :infinity) :: boolean()
  def expire(cache, key, ttl), do: :ats.touch(cache, key, ttl)

  @doc "Returns the number of values."
  @spec size(t()) :: non_neg_integer()
  def size(cache), do: :ats.info(cache, :size)

  @doc "Removes all values, at one moment."
  @spec clear(t()) :: :ok
  def clear(cache) do
    :ats.delete_all_objects(cache)
    :ok
  end

  @doc "Returns all keys, as of one moment."
  @spec keys(t()) :: [term()]
  def keys(cache), do: :ats.select(cache, [{{:"$1", :_}, [], [:"$1"]}])

  @doc "Returns a map of all values, as of one moment."
  @spec to_map(t()) :: map()
  def to_map(cache), do: Map.new(:ats.tab2list(cache))

  @doc """
  Returns the number of values, `:size`, and the memory in bytes, `:memory`; and since the cache was
  started or cleared, the numbers of values that have `:expired` and that were `:evicted`, and about
  how many reads were `:hits` and `:misses`, of which one in 64 is counted.
  """
  @spec stats(t()) :: %{atom() => non_neg_integer()}
  def stats(cache) do
    memory = :ats.info(cache, :memory) * :erlang.system_info(:wordsize)
    counts = for item <- [:expired, :evicted, :hits, :misses], do: {item, :ats.info(cache, item)}
    Map.new([size: size(cache), memory: memory] ++ counts)
  end
end
