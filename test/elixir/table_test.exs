defmodule ATS.TableTest do
  use ExUnit.Case, async: true

  alias ATS.Table

  @types [:set, :ordered_set, :bag, :duplicate_bag, :ordered_bag, :ordered_duplicate_bag]

  test "a table is enumerable" do
    for type <- @types, size <- [0, 1, 99, 100, 101, 1000] do
      table = Table.new(:t, [type])
      objects = for n <- 1..size//1, do: {n, n * n}
      :ats.insert(table.id, objects)
      assert Enum.count(table) == size
      assert Enum.sort(table) == objects
      assert Enum.member?(table, {1, 1}) == size > 0
      refute Enum.member?(table, {1, 2})
      refute Enum.member?(table, {})
      refute Enum.member?(table, 1)
      assert length(Enum.take(table, 3)) == min(size, 3)
      assert Enum.sum(for {n, _} <- table, do: n) == div(size * (size + 1), 2)
      assert :ats.info(table.id, :safe_fixed) == false
    end
  end

  test "pairs are read and written by a table and by its name" do
    for type <- @types do
      table = Table.new(:"pairs_of_#{type}", [type, :named_table])
      one = if type in [:set, :ordered_set], do: & &1, else: &[&1]

      for table <- [table, :"pairs_of_#{type}"] do
        assert Table.get(table, :a) == nil
        assert Table.get(table, :a, 0) == 0
        assert Table.fetch(table, :a) == :error
        refute Table.has_key?(table, :a)
        assert Table.put(table, :a, nil) == :ok
        assert Table.get(table, :a, 0) == one.(nil)
        assert Table.fetch(table, :a) == {:ok, one.(nil)}
        assert Table.has_key?(table, :a)
        assert Table.put(table, 1, 2) == :ok
        assert Table.count(table) == 2
        assert table |> Table.stream() |> Enum.sort() == [{1, 2}, {:a, nil}]
        assert Table.delete(table, 1) == :ok
        assert Table.delete(table, :a) == :ok
        assert Table.delete(table, :a) == :ok
        assert Table.count(table) == 0
      end
    end

    assert_raise ArgumentError, fn -> Table.count(:no_such_table) end
    assert_raise ArgumentError, fn -> Table.get(:no_such_table, 1) end
  end

  test "a value is updated by a function" do
    for type <- [:set, :ordered_set] do
      table = Table.new(:t, [type, :public])
      assert Table.update(table, :a, 1, &(&1 + 1)) == 1
      assert Table.update(table, :a, 1, &(&1 + 1)) == 2
      assert catch_throw(Table.update(table, :a, 1, &throw/1)) == 2
      add = fn _ -> for _ <- 1..100, do: Table.update(table, :sum, 1, &(&1 + 1)) end
      1..4 |> Enum.map(&Task.async(fn -> add.(&1) end)) |> Task.await_many()
      assert Table.get(table, :sum) == 400
    end

    # The key of an ordered set that is there stays.
    table = Table.new(:t, [:ordered_set])
    Table.put(table, 1, :a)
    assert Table.update(table, 1.0, nil, fn :a -> :b end) == :b
    assert Enum.to_list(table) == [{1, :b}]

    bag = Table.new(:t, [:bag])
    assert_raise ArgumentError, fn -> Table.update(bag, :a, 1, & &1) end
  end

  test "objects under the same key are counted" do
    table = Table.new(:t, [:bag])
    :ats.insert(table.id, [{:a, 1}, {:a, 2}])
    assert Enum.count(table) == 2
    assert {:a, 2} in table
  end

  test "enumerations end with zip and with errors, and release the table" do
    table = Table.new(:t, [:ordered_set])
    :ats.insert(table.id, for(n <- 1..500, do: {n}))
    assert Enum.zip(table, [:a, :b]) == [{{1}, :a}, {{2}, :b}]
    assert catch_throw(Enum.each(table, &throw/1)) == {1}
    assert :ats.info(table.id, :safe_fixed) == false

    assert_raise ArgumentError, fn ->
      Enum.each(table, fn _ -> :ats.info(table.id) != :undefined and :ats.delete(table.id) end)
    end
  end

  test "a stream shows the table as it was when its first part was read" do
    for {type, kind} <- [
          set: :all,
          set: :select,
          ordered_set: :all,
          ordered_set: :select,
          ordered_set: :range
        ] do
      table = Table.new(:t, [type, :public])
      objects = for n <- 1..1000, do: {n, :old}
      :ats.insert(table.id, objects)

      stream =
        case kind do
          :all -> table
          :select -> Table.select(table, [{:_, [], [:"$_"]}])
          :range -> Table.range(table, 1, 1000)
        end

      seen =
        Enum.flat_map(stream, fn {n, _} = object ->
          :ats.insert(table.id, for(m <- 1..1200//100, do: {m, n}))
          :ats.delete(table.id, rem(n * 7, 1000))
          [object]
        end)

      assert Enum.sort(seen) == objects
    end
  end

  test "changes are a stream of batches" do
    for type <- @types do
      table = Table.new(:t, [type, :public])
      objects = for n <- 1..2500, do: {n, 0}
      :ats.insert(table.id, objects)
      changes = Table.changes(table, snapshot: true, every: 5)
      assert [first] = Enum.take(changes, 1)
      assert Enum.sort(first) == for(object <- objects, do: {:insert, object})
      assert Process.info(self(), :message_queue_len) == {:message_queue_len, 0}
      assert :ats.info(table.id, :snapshots).number == 0

      # Each batch is followed by a write, which is the next one, and in the end by a delete.
      write = fn batch, n ->
        if n == 5, do: :ats.delete(table.id), else: :ats.insert(table.id, {:new, n})
        {batch, n + 1}
      end

      {[_ | later], 6} = changes |> Enum.map_reduce(1, write)
      inserted = for batch <- later, change <- batch, do: elem(change, tuple_size(change) - 1)
      assert inserted == for(n <- 1..4, do: {:new, n})
      assert Process.info(self(), :message_queue_len) == {:message_queue_len, 0}
    end
  end

  test "a view is a table that follows another" do
    table = Table.new(:source, [])
    :ats.insert(table.id, [{1, :x}, {2, :y}])
    view = Table.view(table, [{{:"$1", :"$2"}, [], [{{:"$2", :"$1"}}]}], type: :ordered_set)
    assert Enum.to_list(view) == [x: 1, y: 2]
    assert :ats.info(view.id, :view).source == :ats.info(table.id, :id)
    assert_raise ArgumentError, fn -> Table.view(table, [], typ: :set) end
    true = :ats.delete(view.id)
  end

  test "a stream of changes may be left, and refuses its own options" do
    table = Table.new(:t, [])
    :ats.insert(table.id, {:a, 1})

    assert catch_throw(table |> Table.changes(%{snapshot: true}) |> Enum.each(&throw/1)) ==
             [insert: {:a, 1}]

    assert :ats.info(table.id, :snapshots).number == 0
    assert_raise ArgumentError, fn -> Table.changes(table, to: self()) end
    assert_raise ArgumentError, fn -> Table.changes(table, active: 5) end
    assert_raise ArgumentError, fn -> table |> Table.changes(evry: 5) |> Enum.take(1) end
  end

  test "a stream releases the table that it began with" do
    rows = for n <- 1..500, do: {n}
    spec = [{:"$1", [], [:"$1"]}]

    # Another table gets the name meanwhile.
    rename = fn ->
      :ats.rename(:fixed, :renamed)
      :ats.new(:fixed, [:named_table])
      :ats.safe_fixtable(:fixed, true)
    end

    # The table is gone at the end.
    delete = fn -> :ats.delete(:fixed) end

    for {meanwhile, fixed} <- [{rename, 1}, {delete, 0}, {fn -> :ok end, 0}] do
      table = :ats.whereis(:ats.new(:fixed, [:named_table, :ordered_set]))
      :ats.insert(table, rows)

      stream =
        Stream.transform(Table.select(:fixed, spec), 0, fn
          row, 0 -> {[row], meanwhile.() && 1}
          row, n -> if(n == 50, do: {:halt, n}, else: {[row], n + 1})
        end)

      assert Enum.to_list(stream) == Enum.take(rows, 50)
      assert :ats.info(table, :safe_fixed) in [false, :undefined]

      if fixed == 1 do
        assert {_, [{_, 1}]} = :ats.info(:fixed, :safe_fixed)
        :ats.delete(:renamed)
      end

      :ats.info(:fixed) != :undefined and :ats.delete(:fixed)
    end

    assert_raise ArgumentError, fn -> Enum.to_list(Table.select(:fixed, spec)) end
  end

  test "ranges are streams" do
    table = Table.new(:t, [:ordered_set])
    :ats.insert(table.id, for(n <- 1..1000, do: {n}))
    assert table |> Table.range(10, 900) |> Enum.to_list() == for(n <- 10..900, do: {n})
    assert table |> Table.range(10, 900, [:reverse]) |> Enum.take(2) == [{900}, {899}]

    assert Table.range(table, 998, 0, high: :unbounded, low: :exclusive) |> Enum.to_list() == [
             {999},
             {1000}
           ]

    assert Table.range(table, 5, 4) |> Enum.to_list() == []

    assert table.id |> Table.range(1, 3, [:keys]) |> Stream.map(&(&1 * 2)) |> Enum.to_list() == [
             2,
             4,
             6
           ]

    bag = Table.new(:b, [:set])
    assert_raise ArgumentError, fn -> bag |> Table.range(1, 2) |> Enum.to_list() end
  end

  test "a supervisor has tables as children" do
    children = [{Table, [:ordered_set, name: :prices]}, {Table, name: :words, access: 1}]
    assert {:error, _} = Supervisor.start_link(children, strategy: :one_for_one) |> trap()
    children = [{Table, [:ordered_set, name: :prices]}, {Table, [:protected, name: :words]}]
    {:ok, supervisor} = Supervisor.start_link(children, strategy: :one_for_one)
    assert :ats.info(:prices, :type) == :ordered_set
    assert :ats.info(:prices, :protection) == :public
    assert :ats.info(:words, :protection) == :protected
    :ats.insert(:prices, {:apple, 30})
    assert Enum.to_list(Table.whereis(:prices)) == [{:apple, 30}]
    # The supervisor makes the table anew, without its objects.
    reference = Process.monitor(owner = :ats.info(:prices, :owner))
    Process.exit(owner, :kill)
    assert_receive {:DOWN, ^reference, _, _, _}
    until(fn -> :ats.info(:prices, :owner) not in [:undefined, owner] end)
    assert Enum.to_list(Table.whereis(:prices)) == []
    Supervisor.stop(supervisor)
    assert Table.whereis(:prices) == nil
    assert_raise ArgumentError, fn -> Table.child_spec([:set]) end
  end

  defp trap(result) do
    result
  end

  defp until(condition) do
    condition.() || (Process.sleep(1) && until(condition))
  end

  setup do
    Process.flag(:trap_exit, true)
    :ok
  end
end
