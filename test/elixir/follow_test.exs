defmodule ATS.FollowTest do
  use ExUnit.Case

  alias ATS.Table
  alias ATS.Table.Producer

  # A process that does with the callbacks of a producer what GenStage does: it takes messages, asks
  # for events when it is told to, and sends them on.
  defmodule Stage do
    defdelegate init(options), to: Producer
    defdelegate handle_demand(demand, state), to: Producer
    defdelegate handle_info(message, state), to: Producer

    def start(options) do
      consumer = self()

      {pid, _monitor} =
        spawn_monitor(fn ->
          {:producer, state} = init(options)
          send(consumer, {:stage, self()})
          loop(consumer, state)
        end)

      receive do
        {:stage, ^pid} -> pid
      after
        10_000 -> flunk("the stage has not begun")
      end
    end

    defp loop(consumer, state) do
      receive do
        {:demand, demand} -> handle_demand(demand, state)
        message -> handle_info(message, state)
      end
      |> case do
        {:noreply, events, state} ->
          for event <- events, do: send(consumer, {:event, self(), event})
          loop(consumer, state)

        {:stop, reason, _state} ->
          exit(reason)
      end
    end
  end

  defp event(pid) do
    receive do
      {:event, ^pid, event} -> event
    after
      10_000 -> flunk("no event")
    end
  end

  defp no_event(pid) do
    refute_receive {:event, ^pid, _}, 100
  end

  defp ended(pid) do
    receive do
      {:DOWN, _, :process, ^pid, reason} -> reason
    after
      10_000 -> flunk("the stage has not ended")
    end
  end

  test "a producer makes the batches that are asked for" do
    table = Table.new(:t, [:public])
    :ats.insert(table.id, for(n <- 1..2500, do: {n, 0}))
    pid = Stage.start(table: table, snapshot: true, every: 5)
    no_event(pid)
    send(pid, {:demand, 2})
    assert Enum.sort(event(pid)) == for(n <- 1..2500, do: {:insert, {n, 0}})
    :ats.insert(table.id, {1, 1})
    assert event(pid) == [{:change, {1, 0}, {1, 1}}]
    :ats.insert(table.id, {1, 2})
    :ats.delete(table.id, 2)
    no_event(pid)
    send(pid, {:demand, 3})
    assert Enum.sort(event(pid)) == [{:delete, {2, 0}}, {:change, {1, 1}, {1, 2}}]
    :ats.insert(table.id, {1, 3})
    assert event(pid) == [{:change, {1, 2}, {1, 3}}]
    send(pid, :anything)
    :ats.insert(table.id, {1, 4})
    assert event(pid) == [{:change, {1, 3}, {1, 4}}]
    :ats.insert(table.id, {1, 5})
    no_event(pid)
    assert :ats.info(table.id, :snapshots).number == 1
    :ats.delete(table.id)
    assert ended(pid) == {:shutdown, {:ended, :deleted}}
  end

  test "a producer has one batch before it is asked, and leaves nothing behind" do
    table = Table.new(:t, [:public])
    pid = Stage.start(table: table.id, every: 5)
    :ats.insert(table.id, {:a, 1})
    no_event(pid)
    :ats.insert(table.id, {:a, 2})
    send(pid, {:demand, 1})
    assert [{:insert, {:a, first}}] = event(pid)
    no_event(pid)
    if first == 1, do: send(pid, {:demand, 1})
    if first == 1, do: assert(event(pid) == [{:change, {:a, 1}, {:a, 2}}])
    Process.exit(pid, :kill)
    assert ended(pid) == :killed
    until(fn -> :ats.info(table.id, :snapshots).number == 0 end)
  end

  test "a producer refuses what a stream of changes refuses" do
    table = Table.new(:t, [])
    assert_raise ArgumentError, fn -> Producer.init(table: table, to: self()) end
    assert_raise ArgumentError, fn -> Producer.init(table: table, active: 5) end
    assert_raise ArgumentError, fn -> Producer.init(table: :nowhere) end
    assert_raise KeyError, fn -> Producer.init(snapshot: true) end
  end

  test "a stream has batches of at least so many changes" do
    table = Table.new(:t, [:public])
    {writer, monitor} = spawn_monitor(fn -> write(table.id, 1) end)

    for batch <- table |> Table.changes(every: 1, at_least: 3) |> Enum.take(3) do
      assert length(batch) >= 3
    end

    Process.exit(writer, :kill)
    assert_receive {:DOWN, ^monitor, :process, ^writer, :killed}, 10_000
  end

  test "tables on disk are followed, too" do
    directory = Path.join(System.tmp_dir!(), "ats_follow_test_#{System.pid()}")
    {:ok, :followed} = :dats.open_file(:followed, file: directory, type: :ordered_set)

    try do
      :ok = :dats.insert(:followed, {:a, 1})
      pid = Stage.start(table: {:dats, :followed}, snapshot: true, every: 5)
      send(pid, {:demand, 2})
      assert event(pid) == [insert: {:a, 1}]
      :ok = :dats.insert(:followed, {:a, 2})
      assert event(pid) == [{:change, {:a, 1}, {:a, 2}}]

      assert {:dats, :followed} |> Table.changes(snapshot: true) |> Enum.take(1) ==
               [[insert: {:a, 2}]]

      :ok = :dats.close(:followed)
      assert ended(pid) == {:shutdown, {:ended, :closed}}
    after
      :dats.close(:followed)
      File.rm_rf!(directory)
    end
  end

  defp write(id, n) do
    :ats.insert(id, {n, n})
    write(id, n + 1)
  end

  defp until(condition) do
    condition.() ||
      (
        Process.sleep(5)
        until(condition)
      )
  end
end
