defmodule ATS.Table.Producer do
  @moduledoc """
  The changes of a table as the events of a producer of GenStage.

  The functions return what GenStage wants from the callbacks of these names, so a stage passes them
  on. This module itself does not need GenStage:

      defmodule Prices do
        use GenStage

        def start_link(table) do
          GenStage.start_link(__MODULE__, table: table, snapshot: true)
        end

        defdelegate init(options), to: ATS.Table.Producer
        defdelegate handle_demand(demand, state), to: ATS.Table.Producer
        defdelegate handle_info(message, state), to: ATS.Table.Producer
      end

  An event is a batch, as an element of `ATS.Table.changes/2` is: the list of all changes between two
  moments, or `:lost`. A batch is made only when consumers have asked for it, so a slow consumer gets
  fewer batches and the last state, and no buffer grows. One batch is made before anybody asks, and
  waits. A consumer that wants an exact copy must be the only one, or have a dispatcher that
  broadcasts.

  The stage stops with the table, by the reason `{:shutdown, {:ended, why}}`. The messages of
  `:ats.follow/2` end with the stage.
  """

  defstruct [:ref, held: [], ahead: 1, parts: []]

  @opaque state :: %__MODULE__{}
  @type event :: [:ats.follow_change()] | :lost

  @doc """
  Begins to follow a table. The options are `table: table`, which is required, and those of
  `:ats.follow/2` but `:active` and `:to`. A table on disk is `table: {:dats, name}`.
  """
  @spec init(keyword()) :: {:producer, state()}
  def init(options) do
    {table, options} = Keyword.pop!(options, :table)
    {:producer, %__MODULE__{ref: ATS.Table.follow(table, ATS.Table.own_options(options))}}
  end

  @doc "Lets as many batches be made as consumers have asked for."
  @spec handle_demand(pos_integer(), state()) :: {:noreply, [event()], state()}
  def handle_demand(demand, %{ahead: ahead} = state) do
    if demand > ahead, do: :ats.follow_more(state.ref, demand - ahead)
    {:noreply, state.held, %{state | ahead: 0, held: []}}
  end

  @doc "Takes a message of the table. Ignores all others."
  @spec handle_info(term(), state()) ::
          {:noreply, [event()], state()} | {:stop, {:shutdown, {:ended, term()}}, state()}
  def handle_info({:ats_changes, ref, :ended, why}, %{ref: ref} = state) do
    {:stop, {:shutdown, {:ended, why}}, state}
  end

  def handle_info({:ats_changes, ref, _, {:part, changes}}, %{ref: ref} = state) do
    {:noreply, [], %{state | parts: [changes | state.parts]}}
  end

  def handle_info({:ats_changes, ref, _, last}, %{ref: ref} = state) do
    event = ATS.Table.batch(state.parts, last)
    deliver(event, %{state | parts: []})
  end

  def handle_info(_, state), do: {:noreply, [], state}

  # Nobody has asked yet.
  defp deliver(event, %{ahead: 1} = state), do: {:noreply, [], %{state | held: [event]}}
  defp deliver(event, state), do: {:noreply, [event], state}
end
