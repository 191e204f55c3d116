# Targets that build, test and measure ats. `make` alone lists them.

SHELL := /bin/sh
.DEFAULT_GOAL := help
EBIN := _build/default/lib/ats/ebin
BENCH = _build/default/lib/ats/bench/erlang
# Absolute, since the measurements are built in their own workspace.
BENCH_TARGET = $(abspath $(or $(CARGO_TARGET_DIR),target))/bench
# rustup's folder, for shells that were started before Rust was installed.
export PATH := $(PATH):$(HOME)/.cargo/bin

# Arguments for the benchmark, for example: make bench ARGS=--quick
ARGS ?=
# Suites for `make test-otp27`; without any, all.
SUITES ?=
# The duration of `make soak`, `make soak-memory`, `make soak-moments` and `make soak-disk`, in seconds.
SOAK_SECONDS ?= 3600

.PHONY: help setup build demo demo-cluster test-quick test test-deep test-otp test-otp27 test-mnesia check sanitize bench \
	bench-latency bench-moments bench-backends bench-native bench-disk bench-tables-on-disk bench-mnesia trace scaling report figures \
	scaling-curves build-bench-backends picture \
	functions soak soak-memory soak-moments soak-disk soak-cluster soak-models shell clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' Makefile

setup: ## Install missing packages to build and test (Debian), or name them
	@./scripts/setup.sh

build: setup ## Build the application; then `erl -pa _build/default/lib/ats/ebin` has `ats`
	@rebar3 compile

demo: build ## Show ats at work on real data, beside ets
	@kind=plain; [ -t 1 ] && kind=terminal; \
	erl -noinput -pa $(EBIN) _build/default/lib/ats/demo \
	    -run ats_demo main $$kind demo/data/UnicodeData.txt.gz

demo-cluster: build ## Show three nodes with mnesia: one is killed, one stopped, nothing is lost
	@erlc -o _build/default/lib/ats/demo test/cluster/ats_cluster.erl test/cluster/ats_cluster_network.erl \
	    test/cluster/ats_mnesia_node.erl
	@kind=plain; [ -t 1 ] && kind=terminal; \
	erl -noinput -pa $(EBIN) _build/default/lib/ats/demo -run ats_demo_cluster main $$kind

test-quick: setup ## Run tests of units, and a few random programs beside ets: under 3 minutes
	@./scripts/test.sh quick

test: setup ## Build all and run the tests of all parts: about 10 minutes
	@./scripts/test.sh usual

test-deep: setup ## Run models, schedules, OTP 27, crashes, timing and other long tests
	@./scripts/test.sh deep

test-otp27: build ## Run the Erlang tests on Erlang/OTP 27; SUITES="ats_select_SUITE ..." for some
	@rebar3 as test compile
	@./scripts/otp27.sh $(SUITES)

test-mnesia: build ## Run the suites of mnesia itself on our storage types: two hours
	@status=0; ./scripts/mnesia-suites.sh ext || status=$$?; \
	ATS_OTP=27 ./scripts/mnesia-suites.sh ext || status=$$?; \
	./scripts/mnesia-suites.sh types || status=$$?; \
	./scripts/mnesia-suites.sh disc || status=$$?; exit $$status

test-otp: build ## Run ets_SUITE, dets_SUITE and qlc_SUITE of Erlang/OTP on our tables, and beside them on its own
	@./scripts/otp-suites.sh

check: setup ## Check formatting, lints, documentation, cross references, types
	@./scripts/check.sh

sanitize: setup ## Run the Rust tests under ThreadSanitizer and AddressSanitizer
	@./scripts/sanitize.sh

bench: build ## Measure ats beside ets; ARGS=--quick for a short run
	@erl -noinput +t 4194304 -pa $(EBIN) $(BENCH) \
	    -eval 'ats_bench:main(init:get_plain_arguments()).' -extra $(ARGS)

bench-latency: build ## Measure the delay of other processes by calls on large tables; beside ets
	@erl -noinput +S 2:2 -pa $(EBIN) $(BENCH) \
	    -eval 'ats_bench_latency:main(init:get_plain_arguments()).' -extra $(ARGS)

bench-moments: build ## Measure what queries of one moment cost: BEFORE=FOLDER has ebin and priv of another version
	@erl -noinput +S 2:2 -pa $(EBIN) $(BENCH) \
	    -eval 'ats_bench_moments:main(init:get_plain_arguments()).' -extra --before "$(BEFORE)" $(ARGS)

bench-backends: build-bench-backends ## Measure the stores that a table can have, beside one another; ARGS=--quick
	@erl -noinput +t 4194304 -pa $(subst default,bench,$(EBIN) $(BENCH)) \
	    -eval 'ats_bench:main(init:get_plain_arguments()).' -extra --field stores $(ARGS)

bench-native: build-bench-native ## Measure the stores beside other Rust maps; ARGS=--quick
	@"$(BENCH_TARGET)/release/ats-bench-memory" $(ARGS)

bench-disk: build-bench-disk ## Measure tables on disk beside other embedded stores; ARGS=--quick
	@"$(BENCH_TARGET)/release/ats-bench-disk" $(ARGS)

# RocksDB takes a quarter of an hour to build; WITHOUT_ROCKSDB=1 leaves it out.
build-bench-%: setup
	@[ $* != disk ] || [ -n "$(WITHOUT_ROCKSDB)" ] || ./bench/disk/setup.sh
	@cd bench && cargo build --release --locked -p ats-bench-$(subst native,memory,$*) \
	    $(if $(and $(filter disk,$*),$(WITHOUT_ROCKSDB)),--no-default-features) --target-dir "$(BENCH_TARGET)"

build-bench-backends: setup
	@rebar3 as bench compile

bench-tables-on-disk: build ## Measure tables on disk with the workloads of osmos, and beside dets and bitcask; ARGS=--quick
	@erl -noinput -pa $(EBIN) $(BENCH) \
	    -eval 'ats_bench_disk:main(init:get_plain_arguments()).' -extra $(ARGS)

bench-mnesia: build ## Measure transactions of mnesia on its own tables and on ours; ARGS=--quick
	@tpcb=$$(./scripts/mnesia-suites.sh tpcb | tail -n 1) && [ -d "$$tpcb" ] && \
	    erl -noinput -pa $(EBIN) $(BENCH) "$$tpcb" \
	    -eval 'ats_bench_mnesia:main(init:get_plain_arguments()), halt().' -extra $(ARGS)

trace: build ## Draw how an ordered_set adapts to contention, into docs/inside/
	@erl -noinput -pa $(EBIN) $(BENCH) \
	    -eval 'ats_bench_trace:main(init:get_plain_arguments()).' -extra $(ARGS)

scaling: setup ## Count what operations cost other cores, and draw how tables scale, into docs/inside/
	@RUSTFLAGS="--cfg counted" cargo run --release --locked --manifest-path bench/Cargo.toml -p ats-bench-scaling \
	    --target-dir "$${CARGO_TARGET_DIR:-target}/counted" -- count docs/inside
	@cargo run --release --locked --manifest-path bench/Cargo.toml -p ats-bench-scaling \
	    --target-dir "$${CARGO_TARGET_DIR:-target}/bench" -- measure docs/inside

report: build-bench-report ## Measure everything that was not measured yet, and draw one file of HTML; ARGS=--quick
	@"$(BENCH_TARGET)/release/ats-bench-report" $(ARGS)

# The curves of docs/inside/scaling.md, from the counts and rates that `make scaling` wrote.
scaling-curves: build-bench-scaling
	@"$(BENCH_TARGET)/release/ats-bench-scaling" curves docs/inside "$(ARGS)/scaling.jsonl"

# Of the full run, or of the quick one with ARGS=--quick.
figures: build-bench-report ## Write tables of README and docs, and the picture, from the last full run's figures
	@"$(BENCH_TARGET)/release/ats-bench-report" --figures . $(ARGS)
	@$(MAKE) -s picture

picture: ## Draw docs/beside-ets.svg from bench/results/beside-ets.csv
	@awk -f bench/pictures/beside_ets.awk bench/results/beside-ets.csv >docs/beside-ets.svg

functions: setup ## Write docs/use/functions.md and functions-on-disk.md, the state of each function
	@ATS_WRITE_DOCS=1 rebar3 ct --suite test/deep/ats_functions_SUITE,test/deep/ats_disk_functions_SUITE

soak: setup ## Run random programs on ets and ats for SOAK_SECONDS and compare
	@ATS_SOAK_SECONDS=$(SOAK_SECONDS) ATS_LARGE_OBJECTS=10000000 ATS_TRAVERSAL_KEYS=200000 \
	    ATS_SELECT_OBJECTS=1000000 rebar3 ct --suite \
	    test/contract/ats_oracle_SUITE,test/deep/ats_oracle_stores_SUITE,test/deep/ats_traversal_SUITE,\
	test/timing/ats_responsive_SUITE,test/timing/ats_latency_SUITE

soak-memory: setup ## Work on tables for SOAK_SECONDS and see that memory does not grow
	@ATS_SOAK_SECONDS=$(SOAK_SECONDS) rebar3 ct --suite test/deep/ats_memory_SUITE

# Table types of the bank run beside each other, those of snapshots one after the other.
soak-moments: setup ## Move money, hold snapshots and make checkpoints of 10 GB beside writers for SOAK_SECONDS
	@ATS_SOAK_SECONDS=$(SOAK_SECONDS) ATS_CHECKPOINT_MB=10000 rebar3 ct --suite \
	    test/deep/ats_bank_SUITE,test/deep/ats_many_snapshots_SUITE,test/deep/ats_moment_memory_SUITE,\
	test/deep/ats_disk_checkpoint_load_SUITE

soak-disk: setup ## Stop machines and kill processes that write to stores on disk for SOAK_SECONDS
	@./scripts/soak-disk.sh $(SOAK_SECONDS)
	@ATS_KILL_ROUNDS=200 ATS_TABLES=10000 rebar3 ct --suite \
	    test/deep/ats_disk_kill_SUITE,test/deep/ats_disk_many_SUITE

soak-models: setup ## Check the models of the tree that two switches make long: a quarter of an hour
	@RUSTFLAGS="--cfg loom" ATS_LONG_MODELS=1 cargo test -p ats-mem --lib --locked --profile models \
	    --target-dir "$${CARGO_TARGET_DIR:-target}/loom" models

# Rounds of each kind of fault.
SOAK_ROUNDS ?= 100
soak-cluster: build ## Kill, stop and cut off nodes that replicate, SOAK_ROUNDS times each
	@ATS_CLUSTER_ROUNDS=$(SOAK_ROUNDS) rebar3 ct --dir test/cluster
	@ATS_RA_ROUNDS=$(SOAK_ROUNDS) ./scripts/ra.sh

shell: build ## Start an Erlang shell with ats
	@erl -pa $(EBIN)

clean: ## Remove everything that was built
	rm -rf _build target priv/*.so
