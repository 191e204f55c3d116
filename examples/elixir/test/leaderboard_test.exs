defmodule LeaderboardTest do
  use ExUnit.Case

  setup do
    start_supervised!(Leaderboard)
    :ok
  end

  test "the best result of a player counts" do
    assert Leaderboard.top(:chess, 3) == []
    assert Leaderboard.record(:chess, "ada", 10) == :best
    assert Leaderboard.record(:chess, "bob", 30) == :best
    assert Leaderboard.record(:chess, "cy", 20) == :best
    assert Leaderboard.record(:chess, "cy", 15) == :not_best
    assert Leaderboard.record(:chess, "ada", 25) == :best
    assert Leaderboard.record(:go, "dan", 99) == :best

    assert Leaderboard.top(:chess, 2) == [{"bob", 30}, {"ada", 25}]
    assert Leaderboard.top(:chess, 9) == [{"bob", 30}, {"ada", 25}, {"cy", 20}]
    assert Leaderboard.between(:chess, 20, 25) == ["ada", "cy"]
    assert Leaderboard.between(:chess, 26, 29) == []
    assert Leaderboard.better_than(:chess, 20) == ["bob", "ada"]
    assert Leaderboard.better_than(:go, 0) == ["dan"]
  end

  test "a guard decides how much is read" do
    for n <- 1..1000, do: Leaderboard.record(:chess, "player #{n}", n)

    assert %{access: :ranges, rows_read: read, rows_returned: 10} =
             Leaderboard.explain(:chess, 990)

    assert read <= 20
    assert Leaderboard.better_than(:chess, 997) == ["player 1000", "player 999", "player 998"]
  end

  test "many processes write at once, and the best results stay" do
    1..8
    |> Task.async_stream(
      fn worker ->
        for n <- 1..200, do: Leaderboard.record(:go, "player #{rem(n, 20)}", n * worker)
      end,
      ordered: false
    )
    |> Stream.run()

    best =
      for n <- 0..19, do: {"player #{n}", 8 * Enum.max(for m <- 1..200, rem(m, 20) == n, do: m)}

    assert Enum.sort(Leaderboard.top(:go, 100)) == Enum.sort(best)
  end

  test "tables, errors and funs look as they do with :ets" do
    table = :ats.new(:fun, [:bag])
    true = :ats.insert(table, [{:a, 1}, {:a, 2}, {:b, %{c: "d"}}])
    assert :ats.lookup(table, :a) == [a: 1, a: 2]
    assert :ats.match(table, {:b, %{c: :"$1"}}) == [["d"]]
    assert :ats.select(table, [{{:a, :"$1"}, [{:>, :"$1", 1}], [:"$_"]}]) == [a: 2]

    assert :ats.select(table, [{:_, [], [{{1, {:element, 1, :"$_"}}}]}], 5) |> elem(0) |> length ==
             3

    true = :ats.delete(table)

    error = assert_raise ArgumentError, fn -> :ats.lookup(table, :a) end
    assert Exception.message(error) =~ "the table identifier does not refer to an existing"
  end

  test "pollers get maps" do
    metrics = Enum.find(:ats_metrics.tables(), &(&1.name == Leaderboard.Scores))
    assert %{type: :ordered_set, size: 0, locks: 1, memory_bytes: bytes} = metrics
    assert is_integer(bytes)
  end
end
