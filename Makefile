# Targets that build, test and measure ats. `make` alone lists them.

SHELL := /bin/sh
.DEFAULT_GOAL := help
EBIN := _build/default/lib/ats/ebin
# Absolute, since the report is built in its own workspace.
BENCH_TARGET = $(abspath $(or $(CARGO_TARGET_DIR),target))/bench
REPORT = (cd bench && cargo build --release --locked -p ats-bench-report --target-dir "$(BENCH_TARGET)") && \
	"$(BENCH_TARGET)/release/ats-bench-report"
# rustup's folder, for shells that were started before Rust was installed.
export PATH := $(PATH):$(HOME)/.cargo/bin

# Which measurement, demonstration or test, and its arguments: make bench WHAT=disk ARGS=--quick
WHAT ?=
ARGS ?=
SOAK_SECONDS ?= 3600

.PHONY: help setup build shell demo test test-quick test-deep test-others check sanitize soak bench report figures functions clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' Makefile

setup: ## Install missing packages to build and test (Debian), or name them
	@./scripts/setup.sh

build: setup ## Build the application; then `erl -pa _build/default/lib/ats/ebin` has `ats`
	@rebar3 compile

demo: build ## Show ats beside ets on real data; WHAT=cluster kills and stops nodes of mnesia
	@kind=plain; [ -t 1 ] && kind=terminal; \
	$(if $(filter cluster,$(WHAT)),erlc -o _build/default/lib/ats/demo test/cluster/ats_cluster.erl \
	    test/cluster/ats_cluster_network.erl test/cluster/ats_mnesia_node.erl && ) \
	erl -noinput -pa $(EBIN) _build/default/lib/ats/demo \
	    -run $(if $(filter cluster,$(WHAT)),ats_demo_cluster main $$kind,ats_demo main $$kind demo/data/UnicodeData.txt.gz)

test-quick: setup ## Run tests of units, and a few random programs beside ets: under 3 minutes
	@./scripts/test.sh quick

test: setup ## Build all and run the tests of all parts: about 10 minutes
	@./scripts/test.sh usual

test-deep: setup ## Run models, schedules, OTP 27, crashes, timing and other long tests
	@./scripts/test.sh deep

test-others: build ## Run suites of others on our tables, for hours; WHAT=otp mnesia otp27 programs openraft
	@rebar3 as test compile
	@./scripts/others/$(or $(WHAT),otp).sh $(ARGS)

check: setup ## Check formatting, lints, documentation, cross references, types
	@./scripts/check.sh

sanitize: setup ## Run the Rust tests under ThreadSanitizer and AddressSanitizer
	@./scripts/sanitize.sh

bench: build ## Measure; WHAT=memory latency moments stores maps disk tables mnesia steps scaling trace
	@./scripts/bench.sh $(or $(WHAT),memory) $(ARGS)

report: setup ## Measure everything that was not measured yet, and draw one file of HTML; ARGS=--quick
	@$(REPORT) $(ARGS)

# Of the full run, or of the quick one with ARGS=--quick.
figures: setup ## Write tables of README and docs, and the picture, from the last full run's figures
	@$(REPORT) --figures . $(ARGS)
	@awk -f bench/pictures/beside_ets.awk bench/results/beside-ets.csv >docs/beside-ets.svg

functions: setup ## Write docs/use/functions.md, functions-on-disk.md and mistakes.md
	@ATS_WRITE_DOCS=1 rebar3 ct --suite test/deep/ats_functions_SUITE,test/deep/ats_disk_functions_SUITE,test/contract/ats_mistakes_SUITE

soak: build ## Try for SOAK_SECONDS to break something; WHAT=programs memory moments disk cluster mnesia models
	@./scripts/soak.sh $(or $(WHAT),programs) $(SOAK_SECONDS)

shell: build ## Start an Erlang shell with ats
	@erl -pa $(EBIN)

clean: ## Remove everything that was built
	rm -rf _build target priv/*.so
