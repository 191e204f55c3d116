defmodule ATS.DashboardTest do
  use ExUnit.Case

  @asked %{search: "dashed", sort_by: :size, sort_dir: :desc, limit: 2}

  test "rows are found, sorted and limited" do
    for {name, size} <- [dashed_a: 1, dashed_b: 30, dashed_c: 20, other: 99] do
      table = ATS.Table.new(name)
      :ats.insert(table.id, for(n <- 1..size, do: {n}))
    end

    assert {[%{name: :dashed_b, size: 30}, %{name: :dashed_c}], 3} =
             ATS.Dashboard.fetch(@asked, node())

    assert {[%{name: :dashed_a}, _], 3} =
             ATS.Dashboard.fetch(%{@asked | sort_dir: :asc, sort_by: :name}, node())

    {rows, _} = ATS.Dashboard.fetch(%{@asked | search: nil, limit: 1000}, node())
    assert Enum.any?(rows, &(&1.name == :other and &1.owner == self()))
    assert {[], 0} = ATS.Dashboard.fetch(%{@asked | search: "none"}, node())
  end

  # Plays the library: the calls of its page builder to a page.
  defmodule Stub do
    def define do
      Code.eval_string("""
      defmodule Phoenix.LiveDashboard.PageBuilder do
        @callback menu_link(map(), map()) :: term()
        @callback render(map()) :: term()
        defmacro __using__(_) do
          quote do
            @behaviour Phoenix.LiveDashboard.PageBuilder
            import Phoenix.LiveDashboard.PageBuilder, only: [sigil_H: 2]
          end
        end
        defmacro sigil_H(text, _), do: quote(do: {var!(assigns), unquote(text)})
      end
      """)
    end
  end

  test "the page is compiled where the dashboard is, and only there" do
    refute Code.ensure_loaded?(ATS.LiveDashboardPage)
    Stub.define()
    Code.put_compiler_option(:ignore_module_conflict, true)
    Code.require_file(Path.join(__DIR__, "../../lib/ats/dashboard.ex"))
    assert {:ok, _} = ATS.LiveDashboardPage.menu_link(%{}, %{})
    {%{page: 1}, text} = ATS.LiveDashboardPage.render(%{page: 1})
    {rows, _} = ATS.Dashboard.fetch(%{@asked | search: nil}, node())
    # Each column is a field of a row.
    for [_, field] <- Regex.scan(~r/field={:(\w+)}/, text), row <- rows do
      assert is_map_key(row, String.to_existing_atom(field))
    end
  end
end
