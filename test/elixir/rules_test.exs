defmodule ATS.RulesTest do
  use ExUnit.Case

  test "the blocks of usage-rules.md hold" do
    text = File.read!(Path.join(__DIR__, "../../usage-rules.md"))
    blocks = for [_, block] <- Regex.scan(~r/```elixir\n(.*?)```/s, text), do: block
    assert length(blocks) == 4
    Code.eval_string(Enum.join(blocks, "\n"))
  end
end
