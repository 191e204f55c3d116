defmodule Mix.Tasks.Compile.AtsNif do
  @moduledoc "Builds the native library with the script that rebar3 uses too."
  use Mix.Task.Compiler

  @impl true
  def run(_arguments) do
    script = Path.join(__DIR__, "build_nif.sh")

    case System.cmd(script, [], into: IO.stream(), stderr_to_stdout: true) do
      {_, 0} -> :ok
      {_, status} -> Mix.raise("build_nif.sh failed with status #{status}")
    end
  end
end

defmodule Ats.MixProject do
  use Mix.Project

  def project do
    [
      app: :ats,
      version: "0.1.0",
      description: "Adaptive Term Storage: concurrent tables with the interfaces of ets and dets",
      elixir: "~> 1.14",
      language: :erlang,
      elixirc_paths: [],
      erlc_options: [:debug_info],
      compilers: [:ats_nif] ++ Mix.compilers(),
      deps: []
    ]
  end

  def application do
    [mod: {:ats_app, []}, registered: [:ats_disk_tables], extra_applications: []]
  end
end
