# Tests of lib/ats.ex: `elixir -pa EBIN... test/elixir/run.exs`. Each file has its own tests.
ExUnit.start()
Code.require_file("table_test.exs", __DIR__)
Code.require_file("follow_test.exs", __DIR__)
Code.require_file("cache_test.exs", __DIR__)
Code.require_file("query_test.exs", __DIR__)
Code.require_file("query_beside_functions_test.exs", __DIR__)
Code.require_file("rules_test.exs", __DIR__)
Code.require_file("dashboard_test.exs", __DIR__)
