defmodule ATS.CacheTest do
  use ExUnit.Case, async: true

  alias ATS.Cache

  defp start(name, options \\ []) do
    start_supervised!({Cache, [name: name] ++ options})
    name
  end

  test "values are put, read and removed" do
    for type <- [:set, :ordered_set] do
      cache = start(:"values_#{type}", type: type)
      assert Cache.get(cache, :a) == nil
      assert Cache.get(cache, :a, 0) == 0
      assert Cache.put(cache, :a, 1) == :ok
      assert Cache.put_all(cache, %{b: 2, c: 3}) == :ok
      assert Cache.put_all(cache, d: 4) == :ok
      assert Cache.get(cache, :a) == 1
      assert Cache.has_key?(cache, :d)
      refute Cache.put_new(cache, :a, 5)
      assert Cache.put_new(cache, :e, 5)
      assert Cache.size(cache) == 5
      assert Enum.sort(Cache.keys(cache)) == [:a, :b, :c, :d, :e]
      assert Cache.to_map(cache) == %{a: 1, b: 2, c: 3, d: 4, e: 5}
      assert Cache.take(cache, :e) == 5
      assert Cache.take(cache, :e) == nil
      assert Cache.take(cache, :e, :none) == :none
      assert Cache.delete(cache, :a) == :ok
      assert Cache.replace(cache, :b, 20)
      refute Cache.replace(cache, :a, 20)
      assert Cache.get(cache, :b) == 20
      assert Cache.clear(cache) == :ok
      assert Cache.size(cache) == 0
    end
  end

  test "values expire" do
    cache = start(:expiring, ttl: 60_000)
    Cache.put(cache, :a, 1)
    Cache.put(cache, :b, 1, ttl: 5)
    Cache.put_all(cache, [c: 1, d: 1], ttl: :infinity)
    assert Cache.put_new(cache, :e, 1, ttl: 5)
    assert Cache.ttl(cache, :a) in 50_000..60_000
    assert Cache.ttl(cache, :c) == :infinity
    assert Cache.ttl(cache, :x) == nil
    Process.sleep(6)
    assert Enum.sort(Cache.keys(cache)) == [:a, :c, :d]
    assert Cache.expire(cache, :c, 10_000)
    assert Cache.ttl(cache, :c) in 5_000..10_000
    assert Cache.touch(cache, :c)
    assert Cache.ttl(cache, :c) in 50_000..60_000
    refute Cache.touch(cache, :x)
    Cache.put(cache, :a, 2, ttl: 100_000)
    Cache.put(cache, :a, 3, ttl: :keep)
    assert Cache.ttl(cache, :a) > 90_000
    assert %{expired: 2, evicted: 0, size: 3, memory: memory} = Cache.stats(cache)
    assert memory > 0
  end

  test "idle values expire" do
    cache = start(:idle, ttl: {:idle, 2_000})
    Cache.put_all(cache, read: 1, left: 1)

    for _ <- 1..8 do
      Process.sleep(300)
      assert Cache.get(cache, :read) == 1
    end

    assert Cache.to_map(cache) == %{read: 1}
  end

  test "a process is told of values that are gone" do
    cache = start(:told, limit: 2, evicted: self())
    for key <- 1..3, do: Cache.put(cache, key, key)
    assert_receive {:"ATS-EVICTED", _, :max_objects, [{1, 1}]}, 5_000
    for _ <- 1..10_000, do: Cache.get(cache, 3)
    assert %{evicted: 1, hits: hits, misses: misses} = Cache.stats(cache)
    assert hits > 5_000
    assert misses <= 64
    spread = start(:spread, ttl: {:spread, 100_000, 50})
    for key <- 1..100, do: Cache.put(spread, key, key)
    assert Enum.count(1..100, &(Cache.ttl(spread, &1) < 75_000)) in 20..80
  end

  test "values that are not read go when there are too many" do
    cache = start(:small, limit: 100)
    Cache.put(cache, :hot, 1)

    for key <- 1..1_000 do
      Cache.put(cache, key, key)
      assert Cache.get(cache, :hot) == 1
      assert Cache.size(cache) <= 100
    end

    assert Cache.stats(cache).evicted == 901
  end

  test "a cache keeps to its memory" do
    cache = start(:bounded, memory: 50_000)

    for key <- 1..5_000 do
      Cache.put(cache, key, List.duplicate(key, 10))
      assert Cache.stats(cache).memory <= 50_500
    end

    assert Cache.size(cache) > 100
    assert_raise ArgumentError, fn -> Cache.put(cache, 1, Enum.to_list(1..50_000)) end
  end

  test "a missing value is made once" do
    cache = start(:fetched)
    made = :counters.new(1, [])

    make = fn key ->
      :counters.add(made, 1, 1)
      Process.sleep(20)
      key * 2
    end

    values = 1..100 |> Enum.map(fn _ -> Task.async(fn -> Cache.fetch(cache, 4, make) end) end)
    assert Enum.all?(Task.await_many(values), &(&1 == 8))
    assert :counters.get(made, 1) == 1
    assert Cache.fetch(cache, 5, make, ttl: 1) == 10
    Process.sleep(2)
    refute Cache.has_key?(cache, 5)
    assert_raise RuntimeError, fn -> Cache.fetch(cache, 6, fn _ -> raise "no value" end) end
    assert Cache.get(cache, 6) == nil
  end

  test "numbers are added up, and keep their deadline" do
    cache = start(:numbers, ttl: 60_000)
    assert Cache.incr(cache, :visits) == 1
    assert Cache.incr(cache, :visits, 5) == 6
    Cache.expire(cache, :visits, 5_000)
    assert Cache.incr(cache, :visits, -2) == 4
    assert Cache.ttl(cache, :visits) <= 5_000
  end

  test "a cache ends with its process, and wrong options are named" do
    name = start(:ending)
    Cache.put(name, :a, 1)
    stop_supervised!({Cache, :ending})
    assert_raise ArgumentError, fn -> Cache.get(name, :a) end
    assert_raise ArgumentError, ~r/:limits/, fn -> Cache.start_link(name: :x, limits: 5) end
    assert_raise ArgumentError, ~r/:bag/, fn -> Cache.start_link(name: :x, type: :bag) end
    assert_raise KeyError, fn -> Cache.start_link(ttl: 5) end
    Process.flag(:trap_exit, true)
    assert {:error, _} = Cache.start_link(name: :x, ttl: 0)
  end
end
