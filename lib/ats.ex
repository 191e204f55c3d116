defmodule ATS.Table do
  @moduledoc """
  A table of `:ats` as a child of a supervisor, as an enumerable, and as a source of streams.

      children = [
        {ATS.Table, [:ordered_set, name: :prices]}
      ]

  The functions of `:ats` take the field `id`, or the name:

      table = ATS.Table.new(:prices, [:ordered_set])
      :ats.insert(table.id, [{:apple, 30}, {:pear, 40}])
      Enum.count(table)                                   #=> 2
      table |> ATS.Table.range(:b, :z) |> Enum.to_list()  #=> [{:pear, 40}]

  Streams read a part of the table at a time, so they need little memory. They are not of one
  moment: what is written meanwhile may be seen or not.
  """

  use GenServer

  @enforce_keys [:id]
  defstruct [:id]

  @typedoc "A table; `id` is what `:ats.new/2` returned."
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

  A clause has a pattern, guards and a result. `^` brings in a value from outside. The result may be
  variables, literals, tuples, lists, maps and the functions that guards may have. What a match
  specification cannot say is an error when the module is compiled.
  """

  @operators %{
    :!= => :"/=",
    :<= => :"=<",
    :=== => :"=:=",
    :!== => :"=/=",
    :and => :andalso,
    :or => :orelse,
    :== => :==,
    :< => :<,
    :> => :>,
    :>= => :>=,
    :+ => :+,
    :- => :-,
    :* => :*,
    :/ => :/
  }
  @functions [
    abs: 1,
    div: 2,
    rem: 2,
    hd: 1,
    tl: 1,
    length: 1,
    map_size: 1,
    round: 1,
    trunc: 1,
    node: 0,
    node: 1,
    self: 0,
    not: 1,
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
    for {:->, _, [[head], body]} <- clauses, do: clause(head, body, __CALLER__)
  end

  defp clause({:when, _, [pattern, guards]}, body, caller),
    do: clause(pattern, [guards], body, caller)

  defp clause(pattern, body, caller), do: clause(pattern, [], body, caller)

  defp clause(pattern, guards, body, caller) do
    {pattern, whole} = whole(pattern)
    {head, names} = head(pattern, %{}, caller)
    names = if whole, do: Map.put(names, whole, :"$_"), else: names
    guards = Enum.map(guards, &expression(&1, names, caller))
    {:{}, [], [head, guards, [expression(body, names, caller)]]}
  end

  # A variable for the object as a whole.
  defp whole({:=, _, [pattern, {name, _, context}]}) when is_atom(context), do: {pattern, name}
  defp whole({:=, _, [{name, _, context}, pattern]}) when is_atom(context), do: {pattern, name}
  defp whole(pattern), do: {pattern, nil}

  # Patterns: numbered variables in the places of names.
  defp head({:_, _, context}, names, _) when is_atom(context), do: {:_, names}
  defp head({:^, _, [value]}, names, _), do: {quote(do: ATS.Query.pinned(unquote(value))), names}

  defp head({name, _, context}, names, _) when is_atom(name) and is_atom(context) do
    names = Map.put_new(names, name, :"$#{map_size(names) + 1}")
    {names[name], names}
  end

  defp head({:{}, meta, elements}, names, caller) do
    {elements, names} = heads(elements, names, caller)
    {{:{}, meta, elements}, names}
  end

  defp head({left, right}, names, caller) do
    {[left, right], names} = heads([left, right], names, caller)
    {{left, right}, names}
  end

  defp head({:%{}, meta, pairs}, names, caller) do
    {values, names} = heads(Keyword.values(pairs_of(pairs)), names, caller)
    keys = Enum.map(pairs, &elem(&1, 0))
    {{:%{}, meta, Enum.zip(keys, values)}, names}
  end

  defp head({:|, meta, [first, rest]}, names, caller) do
    {elements, names} = heads([first, rest], names, caller)
    {{:|, meta, elements}, names}
  end

  defp head(list, names, caller) when is_list(list), do: heads(list, names, caller)
  defp head({:<<>>, _, _} = binary, names, caller), do: {literal(binary, caller), names}
  defp head({:-, _, [number]} = literal, names, _) when is_number(number), do: {literal, names}
  defp head({:__aliases__, _, _} = name, names, caller), do: {Macro.expand(name, caller), names}
  defp head(literal, names, _) when is_number(literal) or is_binary(literal), do: {literal, names}
  defp head(atom, names, caller) when is_atom(atom), do: {plain(atom, caller), names}
  defp head(other, _, caller), do: refuse("no pattern of a match specification", other, caller)

  defp heads(patterns, names, caller), do: Enum.map_reduce(patterns, names, &head(&1, &2, caller))

  defp pairs_of(pairs), do: Enum.map(pairs, fn {_, value} -> {:value, value} end)

  # Guards and results.
  defp expression({:^, _, [value]}, _, _), do: {:const, value}

  defp expression({name, _, context} = variable, names, caller)
       when is_atom(name) and is_atom(context) do
    names[name] ||
      refuse("the pattern does not have the variable (^ is for those outside)", variable, caller)
  end

  defp expression({:{}, _, elements}, names, caller), do: tuple(elements, names, caller)
  defp expression({left, right}, names, caller), do: tuple([left, right], names, caller)

  defp expression({:%{}, meta, pairs}, names, caller) do
    {:%{}, meta, for({key, value} <- pairs, do: {key, expression(value, names, caller)})}
  end

  defp expression(list, names, caller) when is_list(list) do
    Enum.map(list, &expression(&1, names, caller))
  end

  defp expression({:|, meta, [first, rest]}, names, caller) do
    {:|, meta, [expression(first, names, caller), expression(rest, names, caller)]}
  end

  defp expression({:elem, _, [tuple, index]}, names, caller) when is_integer(index) do
    call(:element, [index + 1, expression(tuple, names, caller)])
  end

  defp expression({:elem, _, [tuple, index]}, names, caller) do
    index = call(:+, [expression(index, names, caller), 1])
    call(:element, [index, expression(tuple, names, caller)])
  end

  defp expression({:is_nil, _, [value]}, names, caller) do
    call(:"=:=", [expression(value, names, caller), nil])
  end

  defp expression({:is_boolean, _, [value]}, names, caller) do
    value = expression(value, names, caller)
    call(:orelse, [call(:"=:=", [value, true]), call(:"=:=", [value, false])])
  end

  defp expression({:is_map_key, _, [map, key]}, names, caller) do
    call(:is_map_key, [expression(key, names, caller), expression(map, names, caller)])
  end

  defp expression({:tuple_size, _, [tuple]}, names, caller) do
    call(:size, [expression(tuple, names, caller)])
  end

  defp expression({:in, _, [value, list]}, names, caller) when is_list(list) do
    value = expression(value, names, caller)
    equal = for element <- list, do: call(:"=:=", [value, expression(element, names, caller)])
    Enum.reduce(Enum.reverse(equal), false, &call(:orelse, [&1, &2]))
  end

  defp expression({:-, _, [value]}, names, caller),
    do: call(:-, [expression(value, names, caller)])

  defp expression({:+, _, [value]}, names, caller),
    do: call(:+, [expression(value, names, caller)])

  defp expression({operator, _, [_, _] = arguments}, names, caller)
       when is_map_key(@operators, operator) do
    call(@operators[operator], Enum.map(arguments, &expression(&1, names, caller)))
  end

  defp expression({:<<>>, _, _} = binary, _, caller), do: literal(binary, caller)
  defp expression({:__aliases__, _, _} = name, _, caller), do: Macro.expand(name, caller)

  defp expression({function, _, arguments} = written, names, caller)
       when is_atom(function) and is_list(arguments) do
    if {function, length(arguments)} in @functions do
      call(function, Enum.map(arguments, &expression(&1, names, caller)))
    else
      refuse("no match specification has the function", written, caller)
    end
  end

  defp expression(literal, _, _) when is_number(literal) or is_binary(literal), do: literal

  # Such atoms would be variables.
  defp expression(atom, _, caller) when is_atom(atom), do: plain(atom, caller)

  defp expression(other, _, caller),
    do: refuse("no expression of a match specification", other, caller)

  defp tuple(elements, names, caller) do
    {:{}, [], [{:{}, [], Enum.map(elements, &expression(&1, names, caller))}]}
  end

  defp call(function, arguments), do: {:{}, [], [function | arguments]}

  defp plain(atom, caller) do
    if variable?(atom),
      do: refuse("the atom has a meaning in match specifications", atom, caller),
      else: atom
  end

  defp literal({:<<>>, _, parts} = binary, caller) do
    if Enum.all?(parts, &(is_binary(&1) or is_integer(&1))) do
      binary
    else
      refuse("no match specification looks into binaries", binary, caller)
    end
  end

  defp refuse(text, code, caller) do
    raise CompileError,
      file: caller.file,
      line: caller.line,
      description: "#{text}: #{Macro.to_string(code)}"
  end

  @doc false
  # A value from outside stands in a pattern for itself, so there may be no variable in it.
  def pinned(value) do
    if variables?(value) do
      raise ArgumentError,
            "#{inspect(value)} has an atom that is a variable in match specifications"
    end

    value
  end

  defp variables?(atom) when is_atom(atom), do: variable?(atom)
  defp variables?([first | rest]), do: variables?(first) or variables?(rest)
  defp variables?(tuple) when is_tuple(tuple), do: variables?(Tuple.to_list(tuple))
  defp variables?(map) when is_map(map), do: variables?(Map.to_list(map))
  defp variables?(_), do: false

  defp variable?(:_), do: true
  defp variable?(:"$_"), do: true
  defp variable?(:"$$"), do: true
  defp variable?(atom), do: Regex.match?(~r/^\$[0-9]+$/, Atom.to_string(atom))
end
