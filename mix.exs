defmodule Mix.Tasks.Compile.AtsNif do
  @moduledoc "Builds the native library and documentation with the scripts that rebar3 uses too."
  use Mix.Task.Compiler

  @impl true
  def run(_arguments) do
    run_script("build_nif.sh", [])
    # The script writes beside a folder `ebin`, which the next compiler makes otherwise.
    File.mkdir_p!(Mix.Project.compile_path())
    run_script("scripts/chunks.sh", [Mix.Project.app_path()])
  end

  defp run_script(name, arguments) do
    script = Path.join(__DIR__, name)

    case System.cmd(script, arguments, into: IO.stream(), stderr_to_stdout: true) do
      {_, 0} -> :ok
      {_, status} -> Mix.raise("#{name} failed with status #{status}")
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
      elixirc_paths: ["lib"],
      erlc_options: [:debug_info],
      compilers: [:ats_nif] ++ Mix.compilers(),
      deps: [],
      package: package(),
      docs: docs()
    ]
  end

  # For ex_doc, which finds the groups of functions in their metadata.
  defp docs do
    [main: "readme", extras: ["README.md", "CHANGELOG.md" | Path.wildcard("docs/**/*.md")]]
  end

  # The lists of src/ats.app.src, which rebar3 takes.
  defp package do
    {:ok, [{:application, :ats, properties}]} =
      :file.consult(Path.join(__DIR__, "src/ats.app.src"))

    strings = fn key -> Enum.map(properties[key], &List.to_string/1) end

    [
      files: strings.(:files),
      licenses: strings.(:licenses),
      build_tools: strings.(:build_tools),
      links: Map.new(properties[:links], fn {name, address} -> {"#{name}", "#{address}"} end)
    ]
  end

  def application do
    [mod: {:ats_app, []}, registered: [:ats_disk_tables], extra_applications: []]
  end
end
