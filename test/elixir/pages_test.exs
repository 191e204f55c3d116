defmodule ATS.PagesTest do
  use ExUnit.Case

  @project Path.join(__DIR__, "../..")

  {:ok, ways} = :file.consult(Path.join(@project, "test/moving/pages.terms"))
  @pages for {page, ~c"elixir", :elixir} <- ways, do: List.to_string(page)

  @parsed for {page, ~c"elixir", {:not_run, _}} <- ways, do: List.to_string(page)

  test "there are pages with blocks in Elixir" do
    assert length(@pages) >= 5
    for page <- @parsed, do: assert({:ok, _} = page |> blocks() |> Code.string_to_quoted())
  end

  for page <- @pages do
    test "the blocks of #{page} hold" do
      page = unquote(page)
      folder = Path.join(System.tmp_dir!(), "ats-page-#{System.unique_integer([:positive])}-")
      code = page |> blocks() |> String.replace(["/tmp/", "/var/lib/"], folder)

      try do
        in_process(fn -> Code.eval_string(code, [], file: page) end)
      after
        for table <- :dats.all(), do: :dats.close(table)
        for path <- Path.wildcard(folder <> "*"), do: File.rm_rf!(path)
      end
    end
  end

  # Behind a line of an example stands its value: `#=> 30`.
  test "the values in examples of modules are right" do
    folder = Path.join(System.tmp_dir!(), "ats-examples-#{System.unique_integer([:positive])}")
    start_supervised!({ATS.DiskTable, name: :prices, file: folder, type: :ordered_set})

    try do
      examples =
        for file <- Path.wildcard(Path.join(@project, "lib/**/*.ex")),
            part <- file |> File.read!() |> String.split(~r/\n\s*\n/),
            [example | _] = String.split(part, "\"\"\""),
            example =~ "#=>" do
          checks = Regex.replace(~r/^(.*?) +#=> (.*)$/m, example, "true = (\\1) == (\\2)")
          in_process(fn -> Code.eval_string(checks, [], file: file) end)
        end

      assert length(examples) >= 6
    after
      stop_supervised!({ATS.DiskTable, :prices})
      File.rm_rf!(folder)
    end
  end

  # All blocks of a page are one program.
  defp blocks(page) do
    text = File.read!(Path.join(@project, page))
    blocks = for [_, block] <- Regex.scan(~r/^```elixir\n(.*?)^```/ms, text), do: block
    assert blocks != []
    Enum.join(blocks, "\n")
  end

  # Names that a page registers are free again afterwards.
  defp in_process(run) do
    {pid, ref} =
      spawn_monitor(fn ->
        Process.flag(:trap_exit, true)
        run.()
        {:links, links} = Process.info(self(), :links)
        for linked <- links, is_pid(linked), do: stop(linked)
      end)

    receive do
      {:DOWN, ^ref, :process, ^pid, reason} -> assert reason == :normal
    end
  end

  defp stop(pid) do
    ref = Process.monitor(pid)
    Process.exit(pid, :shutdown)
    receive do: ({:DOWN, ^ref, :process, _, _} -> :ok)
  end
end
