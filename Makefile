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
# The revision of the last release, for `make release`; without it the latest tag.
SINCE ?=

.PHONY: help setup build shell demo precompiled test test-quick test-deep test-others programs check sanitize soak bench report figures functions release clean

##@ To use ats

demo: setup ## Show ats beside ets on real data (3 min); WHAT=cluster kills nodes of mnesia
	@echo "demo: building takes two minutes on two cores the first time" \
	    $(if $(filter cluster,$(WHAT)),,"and the demonstration less than one")
	@rebar3 compile
	@kind=plain; [ -t 1 ] && kind=terminal; \
	$(if $(filter cluster,$(WHAT)),erlc -o _build/default/lib/ats/demo test/cluster/ats_cluster.erl \
	    test/cluster/ats_cluster_network.erl test/cluster/ats_mnesia_node.erl && ) \
	erl -noinput -pa $(EBIN) _build/default/lib/ats/demo \
	    -run $(if $(filter cluster,$(WHAT)),ats_demo_cluster main $$kind,ats_demo main $$kind demo/data/UnicodeData.txt.gz)

build: setup ## Build the application (2 min); `erl -pa _build/default/lib/ats/ebin` has it
	@rebar3 compile

shell: build ## Start an Erlang shell with ats
	@erl -pa $(EBIN)

test: setup ## Build, and run the tests that say whether it works (10 min)
	@./scripts/test.sh usual

precompiled: setup ## Make a folder with a library for projects without Rust (2 min)
	@ATS_GLIBC="$${ATS_GLIBC:-$$(getconf GNU_LIBC_VERSION 2>/dev/null | cut -d ' ' -f 2)}" \
	    ./scripts/precompile.sh $(ARGS)

setup: ## Install missing packages to build and test (Debian), or name them
	@./scripts/setup.sh

clean: ## Remove everything that was built
	rm -rf _build target priv/*.so

help: ## Show this list
	@awk -F ':.*## ' '/^##@ / {printf "\n%s\n", substr($$0, 5)} \
	    /^[a-z0-9-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' Makefile

##@ To change ats

test-quick: setup ## Run tests of units, and a few random programs beside ets (3 min)
	@./scripts/test.sh quick

test-deep: setup ## Run models, schedules, OTP 27, crashes, timing and other long tests (25 min)
	@./scripts/test.sh deep

test-others: build ## Run suites of others on our tables (h); WHAT=otp mnesia otp27 servers openraft
	@rebar3 as test compile
	@./scripts/others/$(or $(WHAT),otp).sh $(ARGS)

programs: build ## Run the tests of programs of others on our tables (1 h); ARGS=quick, pg, ...
	@./scripts/programs.sh $(ARGS)

check: setup ## Check formatting, lints, documentation, cross references, types (4 min)
	@./scripts/check.sh

sanitize: setup ## Run the Rust tests under ThreadSanitizer and AddressSanitizer (15 min)
	@./scripts/sanitize.sh

soak: build ## Try to break tables for SOAK_SECONDS (1 h); WHAT=programs memory disk ...
	@./scripts/soak.sh $(or $(WHAT),programs) $(SOAK_SECONDS)

bench: build ## Measure; WHAT=memory latency moments stores maps disk tables mnesia steps ...
	@./scripts/bench.sh $(or $(WHAT),memory) $(ARGS)

report: setup ## Measure what is missing, and draw a page (2 h; ARGS=--quick: 5 min)
	@$(REPORT) $(ARGS)

# Of the full run, or of the quick one with ARGS=--quick.
figures: setup ## Write tables of README and docs, and the picture, from the last full run
	@$(REPORT) --figures . $(ARGS)
	@awk -f bench/pictures/beside_ets.awk bench/results/beside-ets.csv >docs/beside-ets.svg

functions: setup ## Write docs/use/functions.md, functions-on-disk.md and the pages of mistakes
	@ATS_WRITE_DOCS=1 rebar3 ct --suite test/deep/ats_functions_SUITE,test/deep/ats_disk_functions_SUITE,test/contract/ats_mistakes_SUITE
	@ATS_WRITE_DOCS=1 cargo test --locked -p ats --test maps mistakes
	@! command -v mix >/dev/null || ATS_WRITE_DOCS=1 mix run test/elixir/run.exs

release: ## Make packages, precompiled libraries, pages and SBOM of the last commit (12 min)
	@./scripts/setup.sh release
	@./scripts/release.sh $(SINCE)
