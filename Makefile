# `make help` lists the targets. Everything a target needs is installed or built by it the first time.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.ONESHELL:

# The cache outside of the checkout: RocksDB, Kafka's jars, tools.
export PLIMSOLL_CACHE ?= $(HOME)/.cache/plimsoll

# What `make demo` can be told: the line, how long, lines a second.
export DEMO_LINE ?= 64MiB
export DEMO_SECONDS ?= 20
export DEMO_RATE ?= 10000

# Packages, then RocksDB (built once, shared by all profiles) where cargo finds it.
NATIVE = native="$${ROCKSDB_LIB_DIR:-$$(./native/build.sh)}"; \
  export ROCKSDB_STATIC=1 ROCKSDB_LIB_DIR="$$native"
BUILD = ./native/packages.sh build; $(NATIVE)
ALL_FEATURES = ./native/packages.sh build ssl; $(NATIVE)
TEST = ./native/packages.sh build ssl test; $(NATIVE)
# Apache Kafka's jars, for what runs against a real broker; without them those tests are loudly skipped.
KAFKA = if jars="$$(./native/kafka.sh)"; then export PLIMSOLL_KAFKA="$$jars"; fi

.PHONY: help demo test test-long conformance sim wire-diff wire-faults bench bench-peer bench-latency alloc-bench fuzz-smoke lint doc fmt

help: ## this list
	@sed -nE 's/^([a-z-]+):.*## (.*)/\1\t\2/p' $(MAKEFILE_LIST) | awk -F '\t' '{ printf "make %-14s %s\n", $$1, $$2 }'

demo: ## count words from an embedded mock cluster under DEMO_LINE=64MiB (DEMO_SECONDS=20 DEMO_RATE=10000 lines a second)
	@$(BUILD)
	cargo run --release --quiet --example demo

test: ## every test, also against a real Apache Kafka; ends with `N passed, N failed`
	@$(TEST)
	$(KAFKA)
	./tests/run.sh $(ARGS)

test-long: ## one long case: CASE=name (without it: the list of cases)
	@$(TEST)
	$(KAFKA)
	./tests/long.sh $(CASE)

conformance: ## scenarios against Apache Kafka's own answers: SEEDS=FIRST:COUNT (GENERATOR=handed for generate.py's) or FILES=a.json
	@$(TEST)
	$(KAFKA)
	cargo test --quiet --test conformance -- $(if $(FILES),--files $(FILES),--seeds $(or $(SEEDS),0:300)) \
	  $(if $(GENERATOR),--generator $(GENERATOR))

sim: ## fetcher and sender over a simulated network and brokers: SEEDS=0:2000 (first:count, or one seed)
	@$(BUILD)
	PLIMSOLL_SIM="$(or $(SEEDS),0:2000)" cargo test --quiet -p plimsoll --lib produce::tests::sim -- --nocapture

wire-diff: ## the data path against librdkafka and Java on a real broker: SEEDS=FIRST:COUNT
	@$(TEST)
	$(KAFKA)
	cargo test --quiet --features bench --test wire_diff -- --seeds $(or $(SEEDS),1:1000)

wire-faults: ## the data path on three brokers that fail: RECORDS=4000000 a case, CASE=name for one
	@$(TEST)
	$(KAFKA)
	cargo test --release --quiet --features bench --test wire_faults -- --records $(or $(RECORDS),4000000) --only "$(CASE)"

bench: ## criterion benches: allocator, overlay, codecs, the step
	@$(BUILD)
	cargo bench --quiet -p plimsoll --features bench --bench engine -- $(ARGS)

bench-peer: ## ours, Kafka Streams and a raw librdkafka loop on one broker: a JSON line each
	@$(TEST)
	$(KAFKA)
	./benches/peer/run.sh $(ARGS)

bench-latency: ## latency of pass-through at 10,000 records a second beside the floor and Kafka Streams
	@$(TEST)
	$(KAFKA)
	./benches/peer/latency.sh $(ARGS)

alloc-bench: ## cost of tracking: a JSON line a case
	@$(BUILD)
	cargo bench --quiet -p plimsoll-alloc --bench cost

fuzz-smoke: ## each fuzz target for FUZZ_SECONDS=30 (needs the nightly toolchain)
	@./native/packages.sh build
	./.ci/fuzz

lint: ## formatting, clippy, documentation, licences and sources of dependencies
	@$(ALL_FEATURES)
	./.ci/lint

doc: ## the documentation, into target/doc
	@$(ALL_FEATURES)
	RUSTDOCFLAGS="-D warnings" cargo doc -p plimsoll -p plimsoll-alloc --all-features --no-deps

fmt: ## format the code
	@cargo fmt --all
