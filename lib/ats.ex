defmodule ATS.Table do
  @moduledoc """
  A table of `:ats` as a child of a supervisor, as an enumerable, and as a source of streams.

      children = [
        {ATS.Table, [:ordered_set, name: :prices]}
      ]

  The functions of `:ats` take the field `id`, or the name:

      table = ATS.Table.new(:prices, [:ordered_set])
      :ats.insert(table.id, [{:apple, 30}, {:pear, 40}])
      ATS.Table.get(table, :apple)                        #=> 30
      Enum.count(table)                                   #=> 2
      table |> ATS.Table.range(:b, :z) |> Enum.to_list()  #=> [{:pear, 40}]

  Streams of objects read a part of the table at a time, so they need little memory. A stream shows
  the table as it was when its first part was read. `changes/2` goes from moment to moment.
  """

  use GenServer

  @enforce_keys [:id]
  defstruct [:id]

  @typedoc "A table; `id` is the result of `:ats.new/2`."
  @type t :: %__MODULE__{id: :ats.table()}

  @chunk 100

  @doc "Makes a table that belongs to the calling process. The options are those of `:ats.new/2`."
  @spec new(atom(), list()) :: t()
  def new(name, options \\ []), do: %__MODULE__{id: :ats.new(name, options)}

  @doc "Returns the table with a name, or `nil`."
  @spec whereis(atom()) :: t() | nil
  def whereis(name) do
    case :ats.whereis(name) do
      :undefined -> nil
      id -> %__MODULE__{id: id}
    end
  end

  @doc """
  Starts a process that owns a named table. The table ends with the process.

  The options are those of `:ats.new/2` and `name: name`, which is required. The table is `:public`
  unless they say otherwise, since its owner does nothing with it.
  """
  @spec start_link(list()) :: GenServer.on_start()
  def start_link(options) do
    {name, options} = take_name(options)
    GenServer.start_link(__MODULE__, {name, options})
  end

  @doc "Describes the process of `start_link/1` to a supervisor, which tells children by the name."
  def child_spec(options) do
    {name, _} = take_name(options)
    %{id: {__MODULE__, name}, start: {__MODULE__, :start_link, [options]}}
  end

  defp take_name(options) do
    case List.keytake(options, :name, 0) do
      {{:name, name}, rest} when is_atom(name) -> {name, rest}
      _ -> raise ArgumentError, "ATS.Table needs the option :name, an atom: #{inspect(options)}"
    end
  end

  @impl true
  def init({name, options}) do
    access =
      if Enum.any?([:public, :protected, :private], &(&1 in options)), do: [], else: [:public]

    {:ok, :ats.new(name, [:named_table | access] ++ options)}
  rescue
    error in ArgumentError -> {:stop, {error, __STACKTRACE__}}
  end

  @doc """
  Returns the value of a key in a table of pairs `{key, value}`, or the default if the key is
  missing. In a bag it returns the list of the values.

      table = ATS.Table.new(:prices)
      :ok = ATS.Table.put(table, :apple, 30)
      ATS.Table.get(table, :apple)      #=> 30
      ATS.Table.get(table, :pear, 0)    #=> 0

  This function and those for pairs below take a table or its name.
  """
  @spec get(t() | :ats.table(), term(), term()) :: term()
  def get(table, key, default \\ nil), do: :ats.lookup_element(id(table), key, 2, default)

  @doc "Returns `{:ok, value}` for a key in a table of pairs, or `:error` if the key is missing."
  @spec fetch(t() | :ats.table(), term()) :: {:ok, term()} | :error
  def fetch(table, key) do
    missing = make_ref()

    case get(table, key, missing) do
      ^missing -> :error
      value -> {:ok, value}
    end
  end

  @doc "Returns `true` if a key is in the table."
  @spec has_key?(t() | :ats.table(), term()) :: boolean()
  def has_key?(table, key), do: :ats.member(id(table), key)

  @doc "Inserts the pair of a key and a value, in place of the pair of the key unless in a bag."
  @spec put(t() | :ats.table(), term(), term()) :: :ok
  def put(table, key, value) do
    true = :ats.insert(id(table), {key, value})
    :ok
  end

  @doc """
  Replaces the value of a key in a table of pairs by the result of a function, or inserts the
  default if the key is missing. Returns the new value.

  The function runs in the calling process, and again if another process has written the key
  meanwhile, see `:ats.update/3`. The table is a set.

      table = ATS.Table.new(:visits)
      ATS.Table.update(table, :home, 1, &(&1 + 1))   #=> 1
      ATS.Table.update(table, :home, 1, &(&1 + 1))   #=> 2
  """
  @spec update(t() | :ats.table(), term(), term(), (term() -> term())) :: term()
  def update(table, key, default, fun) do
    change = fn
      [] -> [{key, default}]
      [{same, value}] -> [{same, fun.(value)}]
    end

    [{_, value}] = :ats.update(id(table), key, change)
    value
  end

  @doc "Removes the objects of a key."
  @spec delete(t() | :ats.table(), term()) :: :ok
  def delete(table, key) do
    true = :ats.delete(id(table), key)
    :ok
  end

  @doc "Returns the number of objects. `Enum.count/1` takes no name."
  @spec count(t() | :ats.table()) :: non_neg_integer()
  def count(table), do: Enum.count(%__MODULE__{id: id(table)})

  @doc "Streams all objects, as of the moment at which the first are read."
  @spec stream(t() | :ats.table()) :: Enumerable.t()
  def stream(table), do: select(table, [{:_, [], [:"$_"]}])

  @doc "Streams the results of a match specification, see `ATS.Query`."
  @spec select(t() | :ats.table(), :ats.match_spec()) :: Enumerable.t()
  def select(table, spec) do
    Stream.resource(
      fn ->
        # Another table may have the name at the end.
        id = identifier(id(table))
        true = :ats.safe_fixtable(id, true)
        {id, fn -> :ats.select(id, spec, @chunk) end}
      end,
      fn {id, more} ->
        case more.() do
          {results, continuation} -> {results, {id, fn -> :ats.select(continuation) end}}
          :"$end_of_table" -> {:halt, {id, more}}
        end
      end,
      fn {id, _} -> release(id) end
    )
  end

  @doc """
  Streams the objects of an ordered table with keys from `low` to `high`, in their order.

  The options are those of `:ats.range/4` but the limit: `:reverse`, `low: :exclusive`,
  `high: :unbounded` and so on.
  """
  @spec range(t() | :ats.table(), term(), term(), list()) :: Enumerable.t()
  def range(table, low, high, options \\ []) do
    id = id(table)

    Stream.resource(
      fn -> fn -> :ats.range(id, low, high, [{:limit, @chunk} | options]) end end,
      fn more ->
        case more.() do
          {objects, continuation} -> {objects, fn -> :ats.select(continuation) end}
          :"$end_of_table" -> {:halt, more}
        end
      end,
      fn _ -> :ok end
    )
  end

  @doc """
  Makes a view of a table, which the calling process can delete, see `:ats.view/3`.

      users = ATS.Table.new(:users, [])
      :ats.insert(users.id, {1, "Ann", "Paris"})
      by_city = ATS.Table.view(users, [{{:"$1", :"$2", :"$3"}, [], [{{{{:"$3", :"$1"}}, :"$2"}}]}])
      Enum.to_list(by_city)   #=> [{{"Paris", 1}, "Ann"}]
  """
  @spec view(t() | :ats.table(), :ats.match_spec(), keyword() | map()) :: t()
  def view(table, spec, options \\ []) do
    %__MODULE__{id: :ats.view(id(table), spec, Map.new(options))}
  end

  @doc """
  Streams the changes of a table from now on, batch by batch.

  An element is the list of the changes between two moments, as `:ats.follow/2` sends them, or
  `:lost`. The options are those of that function but `:active` and `:to`. The next batch is made
  when it is asked for, so a slow reader gets fewer batches and the last state, and has at most one
  in its queue. The stream ends with the table. A table on disk is `{:dats, name}`.

      table = ATS.Table.new(:stock, [])
      :ats.insert(table.id, {:apple, 3})
      table |> ATS.Table.changes(snapshot: true) |> Enum.take(1)   #=> [[insert: {:apple, 3}]]
  """
  @spec changes(t() | :ats.table() | {:dats, name :: term()}, keyword() | map()) :: Enumerable.t()
  def changes(table, options \\ []) do
    options = own_options(options)

    Stream.resource(
      fn -> {follow(table, options), :first} end,
      fn {ref, asked} ->
        if asked == :next, do: :ats.follow_more(ref, 1)

        case receive_batch(ref, []) do
          :ended -> {:halt, {ref, :next}}
          batch -> {[batch], {ref, :next}}
        end
      end,
      fn {ref, _} -> :ats.unfollow(ref) end
    )
  end

  defp receive_batch(ref, parts) do
    receive do
      {:ats_changes, ^ref, :ended, _} -> :ended
      {:ats_changes, ^ref, _, {:part, changes}} -> receive_batch(ref, [changes | parts])
      {:ats_changes, ^ref, _, last} -> batch(parts, last)
    end
  end

  @doc false
  def follow(table, options) do
    {:ok, ref} =
      case id(table) do
        {:dats, name} -> :dats.follow(name, options)
        id -> :ats.follow(id, options)
      end

    ref
  end

  @doc false
  def own_options(options) do
    options = Map.new(options)

    case Enum.filter([:active, :to], &is_map_key(options, &1)) do
      [] -> Map.put(options, :active, 1)
      own -> raise ArgumentError, "a stream of changes has its own options #{inspect(own)}"
    end
  end

  @doc false
  def batch(_parts, :lost), do: :lost
  def batch(parts, last), do: parts |> Enum.reverse([last]) |> Enum.concat()

  @doc false
  def id(%__MODULE__{id: id}), do: id
  def id(id), do: id

  defp identifier(name) when is_atom(name) do
    case :ats.whereis(name) do
      :undefined -> name
      id -> id
    end
  end

  defp identifier(id), do: id

  defp release(id) do
    :ats.safe_fixtable(id, false)
  rescue
    # The table is gone.
    ArgumentError -> true
  end

  defimpl Enumerable do
    def count(table) do
      case :ats.info(table.id, :size) do
        :undefined -> raise ArgumentError, "there is no table #{inspect(table.id)}"
        size -> {:ok, size}
      end
    end

    def member?(table, object) when is_tuple(object) do
      position = :ats.info(table.id, :keypos)

      if tuple_size(object) >= position do
        {:ok, object in :ats.lookup(table.id, elem(object, position - 1))}
      else
        {:ok, false}
      end
    end

    def member?(_, _), do: {:ok, false}

    def slice(_), do: {:error, __MODULE__}

    def reduce(table, acc, fun) do
      table |> ATS.Table.select([{:"$1", [], [:"$1"]}]) |> Enumerable.reduce(acc, fun)
    end
  end
end

defmodule ATS.Query do
  @moduledoc """
  Match specifications as Elixir writes functions.

      import ATS.Query

      spec = match_spec do
        {name, %{age: age}} when age >= 18 and name != ^me -> {name, age}
        {:guest, _} = object -> object
      end

      :ats.select(:people, spec)

  A clause has a pattern, guards and a result. `^` brings in a value from outside, which may be the
  key of a map. The result may be variables, literals, tuples, lists, maps and the functions that
  guards may have. Macros are expanded.

  A specification takes the objects that a function with these clauses takes, and has the results of
  the function. A clause that a match specification cannot express is an error when the module is
  compiled. One difference is left: a call in a result that fails does not raise, but has the value
  `:EXIT`.
  """

  # Names of functions of `Kernel` that match specifications have under other names.
  @renamed %{
    :!= => :"/=",
    :<= => :"=<",
    :=== => :"=:=",
    :!== => :"=/=",
    :and => :andalso,
    :or => :orelse
  }
  @functions [
    andalso: 2,
    orelse: 2,
    not: 1,
    ==: 2,
    "/=": 2,
    "=:=": 2,
    "=/=": 2,
    <: 2,
    >: 2,
    "=<": 2,
    >=: 2,
    +: 1,
    -: 1,
    +: 2,
    -: 2,
    *: 2,
    /: 2,
    abs: 1,
    div: 2,
    rem: 2,
    element: 2,
    hd: 1,
    tl: 1,
    length: 1,
    map_size: 1,
    map_get: 2,
    is_map_key: 2,
    round: 1,
    trunc: 1,
    node: 0,
    node: 1,
    self: 0,
    bit_size: 1,
    byte_size: 1,
    is_atom: 1,
    is_float: 1,
    is_integer: 1,
    is_list: 1,
    is_number: 1,
    is_pid: 1,
    is_port: 1,
    is_reference: 1,
    is_tuple: 1,
    is_map: 1,
    is_binary: 1,
    is_function: 1
  ]

  @doc "Makes a match specification of clauses `pattern when guards -> result`."
  defmacro match_spec(do: clauses) do
    unless match?([{:->, _, _} | _], clauses), do: refuse("no clauses", clauses, __CALLER__)

    {specs, values} =
      Enum.flat_map_reduce(clauses, [], fn {:->, _, [head, body]}, values ->
        {specs, own} = clause(head, body, __CALLER__)
        {specs, values ++ own}
      end)

    if values == [], do: specs, else: {:__block__, [], values ++ [specs]}
  end

  # Returns a specification for each guard between several `when`, the first of which that does not
  # fail decides, and the code that makes the values from outside.
  defp clause([{:when, _, [pattern, guards]}], body, caller) do
    clause(pattern, alternatives(guards), body, caller)
  end

  defp clause([{:when, _, _}] = heads, _, caller) do
    refuse("a clause has one pattern", heads, caller)
  end

  defp clause([pattern], body, caller), do: clause(pattern, [[]], body, caller)
  defp clause(heads, _, caller), do: refuse("a clause has one pattern", heads, caller)

  defp clause(pattern, alternatives, body, caller) do
    state = %{caller: caller, names: %{}, numbers: 0, guards: [], pinned: [], values: []}
    {head, state} = object(pattern, state)
    result = expression(body, state)

    specs =
      for guards <- alternatives do
        guards = Enum.reverse(state.guards, Enum.map(guards, &expression(&1, state)))
        all = Enum.reduce(state.pinned, guards, &{:++, [import: Kernel], [&1, &2]})
        {:{}, [], [head, all, [result]]}
      end

    {specs, Enum.reverse(state.values)}
  end

  defp alternatives({:when, _, [guard, others]}), do: [[guard] | alternatives(others)]
  defp alternatives(guard), do: [[guard]]

  # ----- patterns -----

  # An object is a tuple. The variable for it as a whole is `$_`.
  defp object({:=, _, [left, right]} = both, state) do
    cond do
      variable?(right) -> object(left, right, state)
      variable?(left) -> object(right, left, state)
      true -> apart(both, state)
    end
  end

  defp object({:^, _, [value]}, state), do: pinned(:pinned_object, value, state)
  defp object({:{}, _, _} = tuple, state), do: head(tuple, state)
  defp object({_, _} = tuple, state), do: head(tuple, state)

  defp object(pattern, state) do
    text = "no pattern of an object, which is a tuple"

    cond do
      variable?(pattern) -> {:_, inside(pattern, :"$_", state)}
      literal?(pattern) -> refuse(text, literal(pattern, state), state.caller)
      true -> pattern |> expand(:match, text, state) |> object(state)
    end
  end

  defp object(pattern, variable, state) do
    {head, state} = object(pattern, state)
    {head, inside(variable, :"$_", state)}
  end

  # Patterns as match specifications have them: numbered variables in the places of names.
  defp head({:_, _, context}, state) when is_atom(context), do: {:_, state}
  defp head({:^, _, [value]}, state), do: pinned(:pinned, value, state)
  defp head({:=, _, [_, _]} = both, state), do: apart(both, state)

  defp head({:{}, meta, elements}, state) do
    {elements, state} = Enum.map_reduce(elements, state, &head/2)
    {{:{}, meta, elements}, state}
  end

  defp head({left, right}, state) do
    {[left, right], state} = Enum.map_reduce([left, right], state, &head/2)
    {{left, right}, state}
  end

  defp head({:%{}, meta, pairs} = map, state) do
    keys = literal_keys(map, state)

    if length(keys) == length(pairs) and not Enum.any?(keys, &zero?/1) do
      {values, state} = Enum.map_reduce(pairs, state, &head(elem(&1, 1), &2))
      {{:%{}, meta, Enum.zip(keys, values)}, state}
    else
      apart(map, state)
    end
  end

  defp head(list, state) when is_list(list) do
    Enum.map_reduce(list, state, fn
      {:|, meta, [first, rest]}, state ->
        {parts, state} = Enum.map_reduce([first, rest], state, &head/2)
        {{:|, meta, parts}, state}

      element, state ->
        head(element, state)
    end)
  end

  defp head(pattern, state) do
    cond do
      variable?(pattern) ->
        name = name(pattern)

        case state.names do
          %{^name => number} when is_atom(number) ->
            {number, state}

          %{^name => _} ->
            apart(pattern, state)

          _ ->
            {number, state} = number(state)
            {number, put_in(state.names[name], number)}
        end

      literal?(pattern) ->
        literal = literal(pattern, state)
        if zero?(literal), do: apart(literal, state), else: {literal, state}

      true ->
        pattern |> expand(:match, "no pattern of a match specification", state) |> head(state)
    end
  end

  # A pattern that the heads of match specifications do not have, as guards of a variable.
  defp apart(pattern, state) do
    {number, state} = number(state)
    {number, inside(pattern, number, state)}
  end

  # Adds the guards that say that a pattern matches a term, which is an expression.
  defp inside({:_, _, context}, _, state) when is_atom(context), do: state

  defp inside({:^, _, [value]}, term, state) do
    {value, state} = value(value, state)
    guard(:"=:=", [term, {:const, value}], state)
  end

  defp inside({:=, _, [left, right]}, term, state) do
    inside(right, term, inside(left, term, state))
  end

  defp inside({:{}, _, elements}, term, state) do
    state = guard(:is_tuple, [term], state)
    state = guard(:"=:=", [call(:size, [term]), length(elements)], state)

    elements
    |> Enum.with_index(1)
    |> Enum.reduce(state, fn {element, n}, state ->
      inside(element, call(:element, [n, term]), state)
    end)
  end

  defp inside({left, right}, term, state), do: inside({:{}, [], [left, right]}, term, state)

  defp inside({:%{}, _, pairs} = map, term, state) do
    _ = literal_keys(map, state)

    Enum.reduce(pairs, guard(:is_map, [term], state), fn
      {key, value}, state ->
        {key, state} = key(key, state)
        state = guard(:is_map_key, [key, term], state)
        inside(value, call(:map_get, [key, term]), state)

      _, state ->
        refuse("no pattern of a match specification", map, state.caller)
    end)
  end

  defp inside([], term, state), do: guard(:"=:=", [term, []], state)
  defp inside([{:|, _, [first, rest]}], term, state), do: list(first, rest, term, state)
  defp inside([first | rest], term, state), do: list(first, rest, term, state)

  defp inside(pattern, term, state) do
    cond do
      variable?(pattern) ->
        name = name(pattern)

        case state.names do
          %{^name => same} -> guard(:"=:=", [term, same], state)
          _ -> put_in(state.names[name], term)
        end

      literal?(pattern) ->
        guard(:"=:=", [term, literal(pattern, state)], state)

      true ->
        pattern
        |> expand(:match, "no pattern of a match specification", state)
        |> inside(term, state)
    end
  end

  defp list(first, rest, term, state) do
    state = guard(:is_list, [term], state)
    state = guard(:"=/=", [term, []], state)
    inside(rest, call(:tl, [term]), inside(first, call(:hd, [term]), state))
  end

  defp literal_keys({:%{}, _, pairs} = map, state) do
    keys = for {key, _} <- pairs, literal?(key), do: literal(key, state)
    if Enum.uniq(keys) != keys, do: refuse("a key is there twice", map, state.caller)
    keys
  end

  # The key of a map in a pattern is a value: no part of it is matched.
  defp key(key, state) do
    if literal?(key) do
      {literal(key, state), state}
    else
      {value, state} = key |> constant(state) |> value(state)
      {{:const, value}, state}
    end
  end

  defp constant({:^, _, [value]}, _), do: value
  defp constant({:{}, meta, elements}, state), do: {:{}, meta, constant(elements, state)}
  defp constant({left, right}, state), do: {constant(left, state), constant(right, state)}
  defp constant({:%{}, meta, pairs}, state), do: {:%{}, meta, constant(pairs, state)}
  defp constant(list, state) when is_list(list), do: Enum.map(list, &constant(&1, state))

  defp constant(key, state) do
    cond do
      variable?(key) -> refuse("a key of a pattern has no variable without ^", key, state.caller)
      literal?(key) -> literal(key, state)
      true -> key |> expand(:match, "no key of a pattern", state) |> constant(state)
    end
  end

  # A value from outside is made once, before the specification.
  defp value(code, state) do
    variable = Macro.unique_var(:value, __MODULE__)
    {variable, %{state | values: [{:=, [], [variable, code]} | state.values]}}
  end

  defp pinned(function, code, state) do
    {number, state} = number(state)
    head = Macro.unique_var(:head, __MODULE__)
    guards = Macro.unique_var(:guards, __MODULE__)

    value =
      quote do
        {unquote(head), unquote(guards)} =
          ATS.Query.unquote(function)(unquote(code), unquote(number))
      end

    {head, %{state | values: [value | state.values], pinned: [guards | state.pinned]}}
  end

  defp number(%{numbers: numbers} = state) do
    {:"$#{numbers + 1}", %{state | numbers: numbers + 1}}
  end

  defp guard(function, arguments, state) do
    %{state | guards: [call(function, arguments) | state.guards]}
  end

  # ----- guards and results -----

  defp expression({:^, _, [value]}, _), do: {:const, value}
  defp expression({:__block__, _, [expression]}, state), do: expression(expression, state)
  defp expression({:{}, _, elements}, state), do: tuple(elements, state)
  defp expression({left, right}, state), do: tuple([left, right], state)

  defp expression({:%{}, meta, pairs} = map, state) do
    pairs =
      Enum.map(pairs, fn
        {key, value} -> {expression(key, state), expression(value, state), literal?(key)}
        _ -> refuse("no expression of a match specification", map, state.caller)
      end)

    {:%{}, meta, last_of_equal(pairs)}
  end

  defp expression(list, state) when is_list(list) do
    Enum.map(list, fn
      {:|, meta, parts} -> {:|, meta, Enum.map(parts, &expression(&1, state))}
      element -> expression(element, state)
    end)
  end

  defp expression({{:., _, [:erlang, name]}, _, arguments} = written, state) do
    function(name, arguments, state) ||
      refuse("no match specification has the function", written, state.caller)
  end

  defp expression(code, state) do
    cond do
      variable?(code) ->
        state.names[name(code)] ||
          refuse(
            "the pattern does not have the variable (^ is for those outside)",
            code,
            state.caller
          )

      literal?(code) ->
        literal(code, state)

      true ->
        kernel(code, state) || code |> expand(:guard, missing(code), state) |> expression(state)
    end
  end

  defp missing({name, _, _}) when is_atom(name), do: "no match specification has the function"
  defp missing(_), do: "no expression of a match specification"

  # Functions of `Kernel`, unless the module has others with their names.
  defp kernel({name, meta, arguments}, %{caller: caller} = state)
       when is_atom(name) and is_list(arguments) do
    arity = length(arguments)

    if meta[:import] == Kernel or {arity, Kernel} in Keyword.get(meta, :imports, []) or
         Enum.any?(Macro.Env.lookup_import(caller, {name, arity}), &match?({_, Kernel}, &1)) do
      case {name, arguments} do
        {:elem, [tuple, n]} when is_integer(n) ->
          function(:element, [n + 1, tuple], state)

        {:elem, [tuple, n]} ->
          function(:element, [{{:., [], [:erlang, :+]}, [], [n, 1]}, tuple], state)

        {:is_map_key, [map, key]} ->
          function(:is_map_key, [key, map], state)

        {:in, [value, list]} when is_list(list) ->
          any_of(value, list, state)

        _ ->
          function(Map.get(@renamed, name, name), arguments, state)
      end
    end
  end

  defp kernel(_, _), do: nil

  defp any_of(value, list, state) do
    value = expression(value, state)

    list
    |> Enum.reverse()
    |> Enum.reduce(false, fn element, others ->
      call(:orelse, [call(:"=:=", [value, expression(element, state)]), others])
    end)
  end

  defp function(:is_boolean, [value], state) do
    any_of(value, [true, false], state)
  end

  # The function `size` of match specifications takes binaries, too.
  defp function(:tuple_size, [tuple], state) do
    tuple = expression(tuple, state)
    choice(call(:is_tuple, [tuple]), [{true, call(:size, [tuple])}])
  end

  defp function(name, arguments, state) do
    if {name, length(arguments)} in @functions do
      call(name, Enum.map(arguments, &expression(&1, state)))
    end
  end

  # The last of several equal keys wins; those of a match specification have no order.
  defp last_of_equal([]), do: []

  defp last_of_equal([{key, value, known} | others]) do
    value =
      for {other, later, other_known} <- others, not (known and other_known), reduce: value do
        value -> choice(call(:"=:=", [key, other]), [{true, later}, {false, value}])
      end

    if Enum.any?(others, &(elem(&1, 0) === key)),
      do: last_of_equal(others),
      else: [{key, value} | last_of_equal(others)]
  end

  defp choice(condition, values), do: call(:map_get, [condition, {:%{}, [], values}])

  defp tuple(elements, state) do
    {:{}, [], [{:{}, [], Enum.map(elements, &expression(&1, state))}]}
  end

  defp call(function, arguments), do: {:{}, [], [function | arguments]}

  # ----- code -----

  # The name of a variable of a macro is another one than that of its caller.
  defp name({name, meta, context}), do: {name, Keyword.get(meta, :counter, context)}

  @special [:__MODULE__, :__DIR__, :__ENV__, :__CALLER__, :__STACKTRACE__]
  defp variable?({name, _, context}),
    do: is_atom(name) and is_atom(context) and name not in @special

  defp variable?(_), do: false

  defp literal?({:-, _, [number]}), do: is_number(number)
  defp literal?({:__aliases__, _, _}), do: true
  defp literal?({:<<>>, _, _}), do: true
  defp literal?(code), do: is_number(code) or is_binary(code) or is_atom(code)

  defp literal({:-, _, [number]}, _), do: -number

  defp literal({:__aliases__, _, _} = alias, %{caller: caller}) do
    case Macro.expand(alias, caller) do
      name when is_atom(name) -> name
      _ -> refuse("the name of a module is not known", alias, caller)
    end
  end

  defp literal({:<<>>, _, parts} = binary, %{caller: caller}) do
    if Enum.all?(parts, &(is_binary(&1) or is_integer(&1))) do
      binary
    else
      refuse("no match specification looks into binaries", binary, caller)
    end
  end

  defp literal(atom, %{caller: caller}) when is_atom(atom) do
    if special?(atom), do: refuse("the atom has a meaning in match specifications", atom, caller)
    atom
  end

  defp literal(literal, _), do: literal

  # Functions take both zeros for one, and heads of match specifications do not.
  defp zero?(literal), do: is_float(literal) and literal == 0

  defp expand(code, context, text, %{caller: caller}) do
    case Macro.expand(code, %{caller | context: context}) do
      ^code -> refuse(text, code, caller)
      expanded -> expanded
    end
  rescue
    error in ArgumentError -> refuse(Exception.message(error), code, caller)
  end

  defp refuse(text, code, caller) do
    raise CompileError,
      file: caller.file,
      line: caller.line,
      description: "#{text}: #{Macro.to_string(code)}"
  end

  @doc false
  # A value from outside stands in a pattern for itself if no part of it has another meaning there.
  def pinned(value, variable) do
    if itself?(value),
      do: {value, []},
      else: {variable, [{:"=:=", variable, {:const, value}}]}
  end

  @doc false
  def pinned_object(value, variable) when is_tuple(value), do: pinned(value, variable)
  def pinned_object(_, variable), do: {variable, [false]}

  defp itself?(atom) when is_atom(atom), do: not special?(atom)
  defp itself?([first | rest]), do: itself?(first) and itself?(rest)
  defp itself?(tuple) when is_tuple(tuple), do: itself?(Tuple.to_list(tuple))
  defp itself?(map) when is_map(map), do: false
  defp itself?(value), do: not zero?(value)

  defp special?(:_), do: true
  defp special?(:"$_"), do: true
  defp special?(:"$$"), do: true
  defp special?(atom), do: Regex.match?(~r/^\$[0-9]+$/, Atom.to_string(atom))
end
