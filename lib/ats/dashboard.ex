defmodule ATS.Dashboard do
  @moduledoc false
  # The rows of the page for Phoenix LiveDashboard, without that library.

  @doc "Returns the rows that a table of the dashboard asks for, and how many there are in all."
  def fetch(params, node) do
    rows = node |> :erpc.call(:ats_metrics, :tables, []) |> Enum.map(&row/1)
    found = Enum.filter(rows, &found?(&1, params[:search]))
    sorted = Enum.sort_by(found, &{&1[params.sort_by], &1.id}, params.sort_dir)
    {Enum.take(sorted, params.limit), length(found)}
  end

  defp row(metrics) do
    metrics
    |> Map.take([:name, :type, :protection, :size, :memory_bytes, :locks, :contended, :owner])
    |> Map.put(:id, inspect(metrics.id))
  end

  defp found?(_, search) when search in [nil, ""], do: true

  defp found?(row, search) do
    Enum.any?([inspect(row.name), row.id, inspect(row.owner)], &String.contains?(&1, search))
  end
end

if Code.ensure_loaded?(Phoenix.LiveDashboard.PageBuilder) do
  defmodule ATS.LiveDashboardPage do
    @moduledoc """
    A page of tables for Phoenix LiveDashboard.

        live_dashboard "/dashboard", additional_pages: [ats: ATS.LiveDashboardPage]

    It shows no objects. The module is compiled if the dashboard is a dependency that is compiled
    before this one.
    """

    use Phoenix.LiveDashboard.PageBuilder

    @impl true
    def menu_link(_, _), do: {:ok, "Tables of ats"}

    @impl true
    def render(assigns) do
      ~H"""
      <.live_table
        id="ats-tables"
        page={@page}
        title="Tables of ats"
        row_fetcher={&ATS.Dashboard.fetch/2}
      >
        <:col field={:name} header="Name" sortable={:asc} />
        <:col field={:id} header="Table" />
        <:col field={:type} header="Type" />
        <:col field={:protection} header="Protection" />
        <:col field={:size} header="Objects" text_align="right" sortable={:desc} />
        <:col field={:memory_bytes} header="Bytes" text_align="right" sortable={:desc} />
        <:col field={:locks} header="Locks" text_align="right" sortable={:desc} />
        <:col field={:contended} header="Waits" text_align="right" sortable={:desc} />
        <:col :let={table} field={:owner} header="Owner"><%= inspect(table[:owner]) %></:col>
      </.live_table>
      """
    end
  end
end
