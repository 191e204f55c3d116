defmodule ATS.QueryTest do
  use ExUnit.Case, async: true

  import ATS.Query

  @objects [
    {1, "one", %{age: 17, name: :ann}},
    {2, "two", %{age: 18, name: :bob}},
    {3, "three", %{age: 40, name: nil}},
    {:guest, [1, 2, 3], {:a, {:b, 4}}}
  ]

  defp run(spec) do
    table = ATS.Table.new(:t, [:ordered_set])
    :ats.insert(table.id, @objects)
    found = :ats.select(table.id, spec)
    assert found == Enum.to_list(ATS.Table.select(table, spec))
    found
  end

  test "variables, literals, and whole objects" do
    assert run(match_spec(do: ({key, "two", _} -> key))) == [2]
    assert run(match_spec(do: (object -> object))) == @objects
    assert run(match_spec(do: ({:guest, _, _} = object -> object))) == [List.last(@objects)]

    assert run(match_spec(do: ({:guest, [head | tail], {x, {y, z}}} -> {head, tail, [x, y | z]}))) ==
             [{1, [2, 3], [:a, :b | 4]}]

    assert run(match_spec(do: ({key, same, same} -> key))) == []
    assert run(match_spec(do: ({_, _, _} -> {}))) == [{}, {}, {}, {}]

    assert run(match_spec(do: ({3, name, _} -> %{name: name, list: [name]}))) ==
             [%{name: "three", list: ["three"]}]
  end

  test "maps and guards" do
    spec =
      match_spec do
        {key, _, %{age: age, name: name}} when age >= 18 and not is_nil(name) -> {key, age + 1}
        {:guest, list, tuple} when length(list) == 3 -> {elem(tuple, 0), hd(tl(list))}
      end

    assert run(spec) == [{2, 19}, {:a, 2}]
    assert run(match_spec(do: ({k, _, _} when k in [1, 3, :other] -> k))) == [1, 3]
    assert run(match_spec(do: ({k, _, _} when k in [] -> k))) == []

    assert run(match_spec(do: ({k, _, m} when is_map(m) and is_map_key(m, :age) -> k))) == [
             1,
             2,
             3
           ]

    assert run(match_spec(do: ({k, _, t} when tuple_size(t) == 2 -> k))) == [:guest]

    assert run(match_spec(do: ({k, _, _} when k != 1 and (k === 2 or k !== 3) and k <= :z -> -k)))
           |> hd() == -2

    assert run(match_spec(do: ({k, s, _} when byte_size(s) > 3 and rem(k, 2) == 1 -> div(k, 2)))) ==
             [1]
  end

  test "values from outside" do
    me = 2
    tuple = {:a, {:b, 4}}
    assert run(match_spec(do: ({^me, text, _} -> text))) == ["two"]
    assert run(match_spec(do: ({key, _, ^tuple} -> {key, ^tuple}))) == [{:guest, {:a, {:b, 4}}}]
    assert run(match_spec(do: ({key, _, value} when value == ^tuple -> key))) == [:guest]
    assert run(match_spec(do: ({1, _, _} -> ^{:"$1", :_}))) == [{:"$1", :_}]

    # A value stands for itself, also if it has a meaning in match specifications.
    for value <- [:_, :"$1", :"$no", [1, {:"$_"}], %{a: :"$12"}, 0.0] do
      assert run(match_spec(do: ({^value, _, _} -> true))) == []
      table = ATS.Table.new(:t)
      :ats.insert(table.id, [{value, 1}, {1, value}])
      assert :ats.select(table.id, match_spec(do: ({^value, _} -> ^value))) == [value]
    end
  end

  test "more than nine variables" do
    table = ATS.Table.new(:t, [:set])
    :ats.insert(table.id, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})

    spec =
      match_spec(
        do: ({a, b, c, d, e, f, g, h, i, j, k} when j < k -> [k, j, a, b, c, d, e, f, g, h, i])
      )

    assert :ats.select(table.id, spec) == [[11, 10, 1, 2, 3, 4, 5, 6, 7, 8, 9]]
  end

  test "the key bounds what is read" do
    table = ATS.Table.new(:t, [:ordered_set])
    explained = :ats.explain(table.id, match_spec(do: ({k, v} when k >= 10 and k < 20 -> v)))
    assert inspect(explained) =~ "range"
  end

  test "what cannot be said is refused when the module is compiled" do
    for {code, text} <- [
          {"match_spec do {k, _} when String.length(k) > 1 -> k end", "no expression"},
          {"match_spec do {k, _} when foo(k) -> k end", "has the function: foo(k)"},
          {"match_spec do {k, _} -> v end", "does not have the variable"},
          {"match_spec do <<k, _::binary>> -> 1 end", "binaries"},
          {"match_spec do {foo(), k} -> k end", "no pattern"},
          {"match_spec do {:\"$1\", k} -> k end", "meaning"},
          {"match_spec do {k, %{_: v}} -> v end", "meaning"},
          {"match_spec do {k, %{key => v}} -> v end", "no variable without ^: key"},
          {"match_spec do {k, %{k => v}} -> v end", "no variable without ^: k"},
          {"match_spec do {k, %{{1, k} => v}} -> v end", "no variable without ^: k"},
          {"match_spec do {k, %{_ => v}} -> v end", "no variable without ^: _"},
          {"match_spec do {k, %{foo() => v}} -> v end", "no key"},
          {"match_spec do {k, %{m | a: 1}} -> k end", "no pattern"},
          {"match_spec do {k, m} -> %{m | a: k} end", "no expression"},
          {"match_spec do {k, _} -> %{v => k} end", "does not have the variable"},
          {"match_spec do {_, _} -> _ end", "does not have the variable"},
          {"match_spec do {k, %URI{}} -> k end", "no pattern"},
          {"match_spec do {k, <<a, _::binary>>} -> a end", "binaries"},
          {"match_spec do {k, \"a\" <> a} -> a end", "binaries"},
          {"match_spec do {k, %{a: 1, a: v}} -> v end", "twice"},
          {"match_spec do {k, %{Enum => 1, Enum => v, ^k => 1}} -> v end", "twice"},
          {"match_spec do [k] -> k end", "is a tuple"},
          {"match_spec do 1 -> 1 end", "is a tuple"},
          {"match_spec do %{a: 1} -> 1 end", "is a tuple"},
          {"match_spec do k, v -> k end", "one pattern"},
          {"match_spec do k, v when k > 1 -> k end", "one pattern"},
          {"match_spec do -> 1 end", "one pattern"},
          {"match_spec do {k, v} -> (v; k) end", "has the function"},
          {"match_spec do {k, v} -> k ++ v end", "has the function: k ++ v"},
          {"match_spec do {k, v} when k in v -> k end", "compile-time"},
          {"match_spec do {k, v} when k in ^[1] -> k end", "compile-time"},
          {"match_spec do {k, v} -> v.(k) end", "no expression"},
          {"match_spec do {k, v} when v.a -> k end", "no expression"},
          {"match_spec do: 1", "no clauses"},
          {"import Kernel, except: [hd: 1]; match_spec do {k, v} -> hd(v) end",
           "has the function"}
        ] do
      error = assert_raise CompileError, fn -> Code.eval_string("import ATS.Query\n" <> code) end
      assert error.description =~ text
    end
  end
end
