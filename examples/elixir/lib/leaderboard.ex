defmodule Leaderboard do
  @moduledoc """
  The best players of games, in a table of `:ats` that any number of processes read and write.

  A table belongs to the process that makes it, here a server that does nothing else. Everything
  else happens in the processes of the callers.

      {:ok, _} = Leaderboard.start_link([])
      Leaderboard.record(:chess, "ada", 1500)
      Leaderboard.top(:chess, 10)

  The table is an `:ordered_set` with keys `{game, -score, player}`, so that the players of a game
  are neighbours and the best one comes first. A second table remembers the score of each player.
  """
  use GenServer

  @scores __MODULE__.Scores
  @players __MODULE__.Players

  @spec start_link(keyword()) :: GenServer.on_start()
  def start_link(options) do
    GenServer.start_link(__MODULE__, options, name: __MODULE__)
  end

  @doc "Notes a result. Only the best one of a player counts."
  @spec record(atom(), String.t(), non_neg_integer()) :: :best | :not_best
  def record(game, player, score) do
    case :ats.lookup_element(@players, {game, player}, 2, nil) do
      best when best >= score and best != nil -> :not_best
      best -> replace(game, player, best, score)
    end
  end

  @doc "Returns the best players of a game with their scores."
  @spec top(atom(), pos_integer()) :: [{String.t(), non_neg_integer()}]
  def top(game, count) do
    # Reads `count` objects, however many there are.
    case :ats.prefix(@scores, {game, :_, :_}, limit: count) do
      :"$end_of_table" -> []
      {objects, _continuation} -> for {{_, score, player}} <- objects, do: {player, -score}
    end
  end

  @doc "Returns the players with scores from `low` to `high`, the best one first."
  @spec between(atom(), integer(), integer()) :: [String.t()]
  def between(game, low, high) do
    # Tuples are compared element by element, and numbers come before binaries: 0 in the place of
    # the name lies before all names.
    for {_, _, player} <-
          :ats.range(@scores, {game, -high, 0}, {game, -low + 1, 0}, [:keys, high: :exclusive]),
        do: player
  end

  @doc "Returns the players of a game with more than `score`, by a match specification."
  @spec better_than(atom(), integer()) :: [String.t()]
  def better_than(game, score) do
    :ats.select(@scores, better_than_spec(game, score))
  end

  @doc "Explains the reads of the match specification of `better_than/2`, without its results."
  @spec explain(atom(), integer()) :: map()
  def explain(game, score) do
    :ats.explain(@scores, better_than_spec(game, score))
  end

  @impl true
  def init(_options) do
    for {name, type} <- [{@scores, :ordered_set}, {@players, :set}] do
      :ats.new(name, [type, :named_table, :public])
    end

    {:ok, nil}
  end

  # A match specification is data: a list of {pattern, guards, results}. The guard bounds the key,
  # so only players that are better are read.
  defp better_than_spec(game, score) do
    [{{{game, :"$1", :"$2"}}, [{:<, :"$1", -score}], [:"$2"]}]
  end

  # Both tables change as one step, if nobody has noted another result of the player meanwhile.
  defp replace(game, player, best, score) do
    key = {game, player}

    {unchanged, removed} =
      if best,
        do: {{:equals, {key, best}}, [{:delete, {game, -best, player}}]},
        else: {{:absent, key}, []}

    added = {:insert, {{game, -score, player}}}

    parts = [
      {@players, [unchanged], [{:insert, {key, score}}], []},
      {@scores, [], [added | removed], []}
    ]

    case :ats.transact(parts) do
      {true, _} -> :best
      {false, _} -> record(game, player, score)
    end
  end
end
