defmodule ATS.QueryBesideFunctionsTest do
  use ExUnit.Case, async: true

  # Specifications return what functions with the same clauses return. Rounds of random clauses:
  # ATS_QUERY_ROUNDS; a seed that failed is given by ATS_QUERY_SEED.

  defmodule Macros do
    defmacro above(pattern, least) do
      quote do
        ATS.Query.match_spec(do: ({unquote(pattern), x} when x > unquote(least) -> [x, x]))
      end
    end

    defmacro pair(first), do: quote(do: {unquote(first), {x, x}})
    defguard is_small(n) when is_integer(n) and n < 5
  end

  @from_outside [key: :from_outside, map: %{a: 1}, me: 2, zero: -0.0, atom: :_, var: :"$1"] ++
                  [tuple: {1, %{a: 1}}, five: 5, none: nil, object: {1, 5}, list: [1, :"$_"]]

  @objects [
    {1, 5},
    {2.0, 5.0},
    {7, 7},
    {:a, nil},
    {3, %{a: 1, b: 2}},
    {4, %{a: 1}},
    {4.5, %{}},
    {5, %{"key" => 5, 1 => 4, 1.0 => 3, -0.0 => 2, from_outside: 9, _: 8, "$1": 7, nil: 6}},
    {6, %{{1, %{a: 1}} => :t, [1] => {%{a: 1, c: 3}}, %{a: 1} => :m}},
    {:_, :"$1"},
    {:from_outside, :_},
    {0.0, -0.0},
    {-0.1, 0.0},
    {{1, %{a: 1}}, {{1, %{a: 1}}, %{a: 1}}},
    {{1, %{a: 1, b: 2}}, 2},
    {%{a: 1}, %{a: 1, b: %{a: 1}}},
    {%{a: 1, b: 2}, {5, 5}},
    {[1, :"$_"], [1 | 2]},
    {[], 'abc'},
    {"text", <<1, 2, 3>>},
    {Enum, ATS.QueryBesideFunctionsTest},
    {true, false, {}},
    {1, 5, {5, 1}},
    {1, 1, 1.0},
    {nil, %{nil: nil}, [1, 2, 3]},
    {%{}, {2, 2}, "x"}
  ]

  # Patterns, guards and results, one or more clauses.
  @clauses [
    "object -> object",
    "_ -> 1",
    "{_, _} = object -> object",
    "object = {k, _} -> {k, object}",
    "{k, v} = {v, k} -> k",
    "{object, _} = object -> object",
    "{k, {a, b} = t} -> {k, t, a, b}",
    "{k, t = %{a: 1} = m} -> {k, t, m}",
    "{k, m = %{a: x}} when x == 1 and map_size(m) > 1 -> {k, x}",
    "{} -> 1",
    "{k, 5} -> %{key: k, five: 5}",
    "{k, 5.0} -> k",
    "{k, 0.0} -> k",
    "{k, -0.0} -> k",
    "{0.0, v} -> v",
    "{k, k} -> k",
    "{k, _, k} -> k",
    "{k, %{}} -> k",
    "{%{}, v} -> v",
    "{%{a: 1}, v} -> v",
    "{{1, %{a: 1}}, v} -> v",
    "{k, %{a: x}} -> {k, x}",
    "{k, %{a: x, b: x}} -> {k, x}",
    "{k, %{b: %{a: x}}} -> {k, x}",
    "{k, %{^key => v}} -> {k, v}",
    "{k, %{^key => v, a: a}} -> {k, v, a}",
    "{k, %{^atom => v, ^var => w}} -> {k, v, w}",
    "{k, %{^zero => v}} -> {k, v}",
    "{k, %{0.0 => v}} -> {k, v}",
    "{k, %{1 => v, 1.0 => w}} -> {k, v, w}",
    "{k, %{1 => 4, \"key\" => w}} -> {k, w}",
    "{k, %{nil => v}} -> {k, v}",
    "{k, %{^none => v}} -> {k, v}",
    "{k, %{{1, %{a: 1}} => v}} -> {k, v}",
    "{k, %{^tuple => v}} -> {k, v}",
    "{k, %{{1, ^map} => v}} -> {k, v}",
    "{k, %{[1] => {%{a: x}}}} -> {k, x}",
    "{k, %{^map => v}} -> {k, v}",
    "{k, %{%{a: 1} => v}} -> {k, v}",
    "{k, %{^key => y, a: x}} when x < y -> {k, x, y}",
    "{k, %{^map => x, %{a: 1} => x}} -> {k, x}",
    "{k, ^map} -> k",
    "{^map, v} -> v",
    "{^tuple, {^tuple, ^map}} -> 1",
    "{k, {^tuple, %{a: x}}} -> {k, x}",
    "{k, ^zero} -> k",
    "{^zero, v} -> v",
    "{^atom, ^var} -> 1",
    "{^key, v} -> v",
    "{^list, v} -> v",
    "{^me, v} -> v",
    "^object -> 1",
    "^five -> 1",
    "^object = whole -> whole",
    "{k, _} -> %{^key => k}",
    "{k, v} -> %{k => v}",
    "{k, v} -> %{k => 1, v => 2}",
    "{k, v} -> %{v => 1, k => 2}",
    "{k, v} -> %{1 => :one, k => v, 5 => k}",
    "{k, v} -> %{k => 1, k => v}",
    "{k, v} -> %{{k, 1} => [v], [v] => k, %{k => v} => 1}",
    "{k, v} -> {^map, ^tuple, [^zero | k], %{^tuple => v}}",
    "{k, v} -> [k, v | {k}]",
    "{k, [h | t]} -> {k, h, t}",
    "{k, [a, b, c]} -> {k, a, b, c}",
    "{k, [_, _ | t]} -> {k, t}",
    "{k, 'abc'} -> k",
    "{k, []} -> k",
    "{[], k} -> k",
    "{k, <<1, 2, 3>>} -> k",
    "{k, ~s(text)} -> k",
    "{~s(text), k} -> k",
    "{Enum, k} -> k",
    "{k, __MODULE__} -> k",
    "{__MODULE__, k} -> k",
    "{k, -1} -> k",
    "{-0.1, k} -> k",
    "{true, false, t} -> {t, true, nil}",
    "{k, v} when k == v -> k",
    "{k, v} when k === v -> k",
    "{k, v} when k != v and k !== v -> k",
    "{k, v} when k < v or k >= 7 -> {k, v}",
    "{k, v} when hd(v) == 1 or true -> k",
    "{k, v} when true or hd(v) == 1 -> k",
    "{k, v} when hd(v) == 1 when k == 1 -> k",
    "{k, v} when v when k === 7 when tl(v) == [] -> k",
    "{k, v} when not (is_map(v)) and not is_tuple(v) -> k",
    "{k, v} when is_nil(v) or is_boolean(k) -> k",
    "{k, v} when is_nil(v) == false -> k",
    "{k, v} when k in [1, 2, 7, nil] -> v",
    "{k, v} when k in [1, ^me, v] -> v",
    "{k, v} when k in 1..5 -> v",
    "{k, v} when k not in 1..5 -> v",
    "{k, v} when k in 'abc' or v in [5] -> k",
    "{k, v} when tuple_size(v) != 3 -> k",
    "{k, v} when tuple_size(v) == 2 -> {k, tuple_size(v)}",
    "{k, v} when byte_size(v) == 3 or bit_size(k) == 32 -> k",
    "{k, v} when elem(v, 0) == 5 -> {k, elem(v, 1)}",
    "{k, v} when elem(v, k - 4) == 5 -> k",
    "{k, v} when is_map_key(v, :a) -> k",
    "{k, v} when is_map_key(v, ^key) and map_size(v) > 2 -> k",
    "{k, v} when v == %{a: 1} -> k",
    "{k, v} when v == ^map -> k",
    "{k, v} when v == %{b: 2, a: ^me - 1} -> k",
    "{k, v} when {k, v} == {1, 5} -> k",
    "{k, v} when [k, v] > [1, 5] -> k",
    "{k, v} when {{k}} == {{v}} -> k",
    "{k, v} when -v < k and +k > 0 and abs(k) * 2 / 1 > k -> k - v",
    "{k, v} when div(v, 2) == 2 and rem(k, 2) == 1 -> {div(k, 2), rem(v, 3)}",
    "{k, v} when round(v) == v and trunc(k) == k -> k",
    "{k, v} when length(v) == 3 -> k",
    "{k, v} when is_list(v) and hd(v) == 1 -> {k, hd(v), tl(v)}",
    "{k, v} when is_small(k) -> v",
    "{k, v} when is_atom(k) and is_atom(v) when is_float(k) and is_number(v) -> k",
    "{k, v} when is_binary(k) and is_binary(v) -> k",
    "{k, v} when is_struct(v) -> k",
    "{k, v} when self() == self() and node() == node() and not is_pid(k) -> v",
    "{k, v} when is_integer(k) and not (is_port(v) or is_reference(v) or is_function(v)) -> k",
    "{k, v} when v -> k",
    "{k, v} when 1 -> {k, v}",
    "{k, v} when nil -> {k, v}",
    "{k, v} when ^key == :from_outside -> {k, v}",
    "{1, v} -> {:one, v}; {k, 7} -> {:seven, k}; {_, _, z} -> z; _ -> :other",
    "{^me, _} -> 1; {k, %{^key => v}} when v > 1 -> {k, v}; {k, ^map} -> k",
    "pair(k) -> {k}",
    "{k, ((x))} when ((x)) == 5 -> (((k)))",
    "{k, v} -> ({k, v})"
  ]

  test "patterns, guards and results" do
    for clauses <- @clauses, do: compare(clauses, @from_outside, @objects)
  end

  # Objects are made from the patterns, so that most of them fit.
  test "random clauses" do
    rounds = String.to_integer(System.get_env("ATS_QUERY_ROUNDS", "100"))
    seed = String.to_integer(System.get_env("ATS_QUERY_SEED", "#{:erlang.system_time()}"))
    :rand.seed(:exsss, seed)

    for _ <- 1..rounds do
      values = for n <- 0..3, do: {:"p#{n}", term(2)}
      patterns = for _ <- 1..one_of([1, 1, 2, 3]), do: tuple_pattern()
      objects = for pattern <- patterns, _ <- 1..4, do: object(pattern, values)

      objects =
        for object <- objects, other <- [object, changed(object)], is_tuple(other), do: other

      objects = for object <- objects, tuple_size(object) >= 2, do: object
      clauses = for pattern <- patterns, do: random_clause(pattern)
      compare(clauses, values, objects, "ATS_QUERY_SEED=#{seed}")
    end
  end

  defp one_of(list), do: Enum.random(list)
  defp variable(name), do: {name, [], nil}

  defp tuple_pattern do
    tuple = {:{}, [], for(_ <- 1..one_of([2, 2, 3]), do: pattern(3))}
    one_of([tuple, tuple, tuple, {:=, [], [tuple, variable(one_of([:o, :x]))]}])
  end

  defp pattern(0), do: one_of([{:_, [], nil}, variable(one_of([:x, :y, :z])), simple(), pin()])

  defp pattern(depth) do
    case :rand.uniform(12) do
      1 -> {:{}, [], for(_ <- 1..one_of([1, 2, 3])//1, do: pattern(depth - 1))}
      2 -> {pattern(depth - 1), pattern(depth - 1)}
      3 -> for _ <- 1..one_of([0, 1, 2])//1, do: pattern(depth - 1)
      4 -> [{:|, [], [pattern(depth - 1), pattern(depth - 1)]}]
      n when n in 5..7 -> {:%{}, [], map_pairs(depth)}
      8 -> {:=, [], [pattern(depth - 1), pattern(depth - 1)]}
      _ -> pattern(0)
    end
  end

  defp map_pairs(depth) do
    pairs = for _ <- 1..one_of([0, 1, 1, 2])//1, do: {key(), pattern(depth - 1)}
    Enum.uniq_by(pairs, &elem(&1, 0))
  end

  defp key, do: one_of([simple(), pin(), pin(), {1, pin()}, [simple()], {:%{}, [], [a: pin()]}])
  defp pin, do: {:^, [], [variable(one_of([:p0, :p1, :p2, :p3]))]}
  defp simple, do: one_of([1, 1.0, 0.0, 2, :a, nil, true, "s", -1, [], 0])

  defp term(0),
    do: one_of([1, 1.0, 0.0, -0.0, 2, :a, nil, :_, :"$1", :"$_", true, "s", -1, [], 0])

  defp term(depth) do
    case :rand.uniform(8) do
      1 ->
        List.to_tuple(for _ <- 1..one_of([0, 1, 2])//1, do: term(depth - 1))

      2 ->
        for _ <- 1..one_of([0, 1, 2])//1, do: term(depth - 1)

      3 ->
        [term(depth - 1) | term(depth - 1)]

      n when n in 4..5 ->
        for _ <- 1..one_of([0, 1, 2])//1, into: %{}, do: {term(depth - 1), term(0)}

      _ ->
        term(0)
    end
  end

  # An object that a pattern takes, if its parts do not contradict each other.
  defp object(pattern, values) do
    names = for name <- [:x, :y, :z, :o], into: Map.new(values), do: {name, term(2)}
    made(pattern, names)
  end

  defp made({:_, _, nil}, _), do: term(2)
  defp made({:^, _, [{name, _, nil}]}, names), do: names[name]
  defp made({:=, _, [left, right]}, names), do: made(one_of([left, right, left]), names)
  defp made({:{}, _, parts}, names), do: parts |> Enum.map(&made(&1, names)) |> List.to_tuple()
  defp made({left, right}, names), do: {made(left, names), made(right, names)}

  defp made({:%{}, _, pairs}, names) do
    more = one_of([%{}, %{}, %{a: 1, z: 2}])
    for {key, value} <- pairs, into: more, do: {made(key, names), made(value, names)}
  end

  defp made([{:|, _, [first, rest]}], names), do: [made(first, names) | made(rest, names)]
  defp made(list, names) when is_list(list), do: Enum.map(list, &made(&1, names))
  defp made({name, _, nil}, names), do: names[name]
  defp made(literal, _), do: literal

  defp changed(tuple) when is_tuple(tuple) and tuple_size(tuple) > 0 do
    put_elem(tuple, :rand.uniform(tuple_size(tuple)) - 1, term(2))
  end

  defp changed(_), do: {1, 2}

  defp random_clause(pattern) do
    {_, names} =
      Macro.prewalk(pattern, [], fn
        {:^, _, _}, names -> {nil, names}
        {name, _, nil} = variable, names when name != :_ -> {variable, [variable | names]}
        other, names -> {other, names}
      end)

    names = Enum.uniq(names)
    head = if names == [], do: [pattern], else: [{:when, [], [pattern, guard(names, 2)]}]
    {:->, [], [head, result(names)]}
  end

  defp guard(names, depth) do
    {a, b, c} = {one_of(names), operand(names), operand(names)}

    one_of([
      true,
      quote(do: unquote(a) == unquote(b)),
      quote(do: unquote(a) != unquote(b)),
      quote(do: unquote(b) <= unquote(c)),
      quote(do: unquote(a) in [unquote(b), unquote(c)]),
      quote(do: is_map_key(unquote(a), unquote(b))),
      quote(do: elem(unquote(a), 0) === unquote(b)),
      quote(do: tuple_size(unquote(a)) >= unquote(c)),
      quote(do: hd(unquote(a)) === unquote(b)),
      quote(do: is_nil(unquote(a)) or is_boolean(unquote(a))),
      quote(do: unquote(b) - 1 < unquote(a)),
      quote(do: {unquote(a), [unquote(b)]} < {unquote(b), unquote(c)}),
      quote(do: %{unquote(a) => unquote(b)} == %{unquote(b) => unquote(c)})
      | if(depth == 0,
          do: [],
          else: [
            quote(do: unquote(guard(names, depth - 1)) and unquote(guard(names, depth - 1))),
            quote(do: unquote(guard(names, depth - 1)) or unquote(guard(names, depth - 1))),
            quote(do: not unquote(guard(names, depth - 1))),
            {:when, [], [guard(names, 0), guard(names, 0)]}
          ]
        )
    ])
    |> top_when(depth)
  end

  # `when` stands between guards only.
  defp top_when({:when, _, [guard, _]}, depth) when depth < 2, do: guard

  defp top_when({name, meta, arguments}, 2) when name in [:and, :or, :not] do
    {name, meta, Enum.map(arguments, &top_when(&1, 1))}
  end

  defp top_when(guard, _), do: guard

  defp operand(names), do: one_of(names ++ [simple(), pin()])

  defp result(names) do
    all = {:{}, [], names}
    {a, b, c} = {operand(names), operand(names), operand(names)}

    made =
      one_of([
        a,
        [all, {:|, [], [a, b]}],
        {:%{}, [], [{all, a}]},
        {:%{}, [], Enum.uniq_by([{a, b}, {b, all}, {c, a}], &elem(&1, 0))},
        {:%{}, [], Enum.uniq_by([{1, a}, {c, b}, {:a, all}], &elem(&1, 0))}
      ])

    {all, made}
  end

  test "variables of macros are their own" do
    spec = run_quoted(quote(do: above(x, 4)), [])

    assert :ets.match_spec_run([{1, 5}, {2, 3}, {7, 7}], :ets.match_spec_compile(spec)) == [
             [5, 5],
             [7, 7]
           ]
  end

  # ----- the comparison -----

  defp compare(clauses, from_outside, objects, more \\ "") do
    clauses = if is_binary(clauses), do: quoted(clauses), else: clauses
    text = Macro.to_string(clauses)
    spec = run_quoted(quote(do: match_spec(do: unquote(clauses))), from_outside)
    function = run_quoted({:fn, [], Enum.map(clauses, &as_function/1) ++ none()}, from_outside)

    for type <- [:set, :ordered_set, :duplicate_bag], keypos <- [1, 2] do
      table = :ats.new(:t, [type, {:keypos, keypos}])
      :ats.insert(table, objects)
      wanted = for object <- :ats.tab2list(table), (found = function.(object)) != :none, do: found
      found = :ats.select(table, spec)
      :ats.delete(table)

      assert Enum.frequencies(found) === Enum.frequencies(wanted),
             "#{text} of #{type}: #{inspect(spec)} #{more}"
    end
  end

  defp quoted(text) do
    {:fn, _, clauses} = Code.string_to_quoted!("fn #{text} end")
    clauses
  end

  # Functions have values from outside without `^`, other than in patterns.
  defp as_function({:->, meta, [[{:when, whenmeta, [pattern, guards]}], body]}) do
    {:->, meta, [[{:when, whenmeta, [pattern, unpinned(guards)]}], unpinned(body)]}
  end

  defp as_function({:->, meta, [head, body]}), do: {:->, meta, [head, unpinned(body)]}

  defp unpinned(code) do
    Macro.prewalk(code, fn
      {:^, _, [value]} -> value
      other -> other
    end)
  end

  defp none, do: quote(do: (_ -> :none))

  defp run_quoted(code, binding) do
    code =
      quote do
        import ATS.Query
        import ATS.QueryBesideFunctionsTest.Macros
        unquote(code)
      end

    {result, _} = Code.eval_quoted(code, binding, file: "clauses")
    result
  end
end
