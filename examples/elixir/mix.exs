defmodule Leaderboard.MixProject do
  use Mix.Project

  def project do
    [
      app: :leaderboard,
      version: "0.1.0",
      elixir: "~> 1.14",
      deps: [{:ats, path: "../.."}]
    ]
  end

  def application do
    [extra_applications: [:logger]]
  end
end
