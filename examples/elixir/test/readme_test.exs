defmodule ReadmeTest do
  use ExUnit.Case

  # Behind a prompt stands an expression, and below it its value, if it is shown.
  test "the lines of README.md say what they return" do
    text = File.read!(Path.join(__DIR__, "../README.md"))
    [_, block] = Regex.run(~r/```elixir\n(.*?)```/s, text)
    [_ | steps] = String.split(block, ~r/^iex> /m)
    assert length(steps) == 4

    Enum.reduce(steps, [], fn step, bindings ->
      [expression | shown] = String.split(step, "\n", parts: 2)
      {value, bindings} = Code.eval_string(expression, bindings)

      case shown |> Enum.join() |> String.trim() do
        "" ->
          :ok

        shown ->
          assert {expression, value} == {expression, shown |> Code.eval_string() |> elem(0)}
      end

      bindings
    end)

    # Its name is free again for other tests.
    GenServer.stop(Leaderboard)
  end
end
