defmodule ATS.DiskTableTest do
  use ExUnit.Case, async: true

  alias ATS.DiskTable

  setup do
    directory =
      Path.join(System.tmp_dir!(), "ats-disk-table-#{System.unique_integer([:positive])}")

    on_exit(fn -> File.rm_rf!(directory) end)
    {:ok, directory: directory}
  end

  test "a table is a child of a supervisor, and is there again after a kill", %{
    directory: directory
  } do
    options = [name: :of_disk, file: directory, type: :ordered_set]
    {:ok, supervisor} = Supervisor.start_link([{DiskTable, options}], strategy: :one_for_one)
    [{{DiskTable, :of_disk}, pid, :worker, _}] = Supervisor.which_children(supervisor)
    objects = for n <- 1..1000, do: {n, n * n}
    :ok = :dats.insert(:of_disk, objects)
    Process.exit(pid, :kill)
    assert until(fn -> :dats.info(:of_disk, :size) == 1000 and alive(supervisor) != pid end)
    assert :of_disk |> DiskTable.stream() |> Enum.to_list() == objects
    assert :of_disk |> DiskTable.range(7, 9) |> Enum.to_list() == [{7, 49}, {8, 64}, {9, 81}]
    assert :of_disk |> DiskTable.range(1, 500, low: :exclusive) |> Enum.count() == 499
    import ATS.Query
    odd = match_spec(do: ({n, square} when rem(n, 2) == 1 -> square))
    assert :of_disk |> DiskTable.select(odd) |> Enum.take(2) == [1, 9]
    :ok = Supervisor.stop(supervisor)
    assert :dats.info(:of_disk, :size) == :undefined
    assert_raise ArgumentError, fn -> Enum.to_list(DiskTable.stream(:of_disk)) end
  end

  test "wrong options are named", %{directory: directory} do
    Process.flag(:trap_exit, true)
    assert_raise ArgumentError, ~r/needs the option :name/, fn -> DiskTable.start_link([]) end
    wrong = [name: :wrong, file: directory, type: :orderd_set]
    assert {:error, {%ArgumentError{}, _}} = DiskTable.start_link(wrong)
    nowhere = Path.join([directory, "not", "there"])
    assert {:error, {:file_error, _, :enoent}} = DiskTable.start_link(name: :wrong, file: nowhere)
  end

  defp alive(supervisor) do
    [{_, pid, _, _}] = Supervisor.which_children(supervisor)
    pid
  end

  defp until(is_so, left \\ 500) do
    is_so.() or (left > 0 and Process.sleep(10) == :ok and until(is_so, left - 1))
  end
end
