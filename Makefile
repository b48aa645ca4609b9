# Every target sets up what it needs, in .venv in this directory. Start with `make help`.
#
#   make run ARGS="server.properties --override num.partitions=3"
#   make unit ARGS="tests/storage -k journal"
#   make PYTHON=/opt/python3.13/bin/python3 test

.DELETE_ON_ERROR:
.NOTPARALLEL:
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
# Where it is set, hundreds of processes would read the same sources again.
unexport PYTHONDONTWRITEBYTECODE

# The first Python of 3.11 or newer; PYTHON=... chooses another one. The distribution's comes first if it is
# complete: it is built with profile-guided optimisation, and one that was built on the machine, by pyenv
# for example, mostly is not.
PYTHON ?= $(shell \
	if [ -e "$$(/usr/bin/python3 -c 'import ensurepip, sys, sysconfig; \
		print(sysconfig.get_path("include") if sys.version_info >= (3, 11) else "")' 2>/dev/null)/Python.h" ]; \
	then echo /usr/bin/python3; exit; fi; \
	for name in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	if $$name -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; \
	then echo $$name; break; fi; done)

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet install
UNIT := $(wildcard $(addprefix tests/,protocol storage coordinator broker spark_connector \
	bench cluster counterparts groups history javascript real walks workload))
COMPAT_SPARK ?= 4.3.0
# Tests run beside each other: what only computes one for each processor, what also waits, for disks,
# timers and other processes, more. Each process collects all of the tests.
JOBS ?= $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)
PYTEST := $(BIN)/python -m pytest --durations=10
# Also show what is only a warning elsewhere: sockets left open, coroutines never awaited.
STRICT_PYTEST := PYTHONDEVMODE=1 PYTHONMALLOC=pymalloc $(PYTEST) -p tests.without_stacks
PARALLEL := $(if $(filter-out 1,$(JOBS)),--numprocesses=$(JOBS) --dist=worksteal)
ONE_MORE := $(if $(filter-out 1,$(JOBS)),--numprocesses=$$((1 + $(JOBS))) --dist=worksteal)
CROWDED := $(if $(filter-out 1,$(JOBS)),--numprocesses=$$((2 * $(JOBS))) --dist=worksteal)
# The same, where the tests of a file share a broker that takes long to fill; see tests/spark/sharing.py.
CROWDED_FILES := $(subst worksteal,loadfile --no-loadscope-reorder,$(CROWDED))
# Six at a time of those that start JVMs, on every machine: together they need 5 GB, and each waits half
# of its time. The tests of a file share theirs. Long files first.
IN_SIXES := $(if $(filter-out 1,$(JOBS)),--numprocesses=6 --dist=loadfile --no-loadscope-reorder)
ARGS ?=

# Run $(1), into a log that is shown at the end, and beside it $(2), one after the other.
define both
	@mkdir -p build
	@$(MAKE) --no-print-directory $(1) >build/$(1).log 2>&1 & beside=$$!; failed=''; \
	$(MAKE) --no-print-directory $(2) || failed='$(2)'; \
	wait $$beside || failed+=' $(1)'; \
	cat build/$(1).log; [ -z "$$failed" ]
endef

define heading
	@printf '\n== %s\n' "$(1)"
endef

.PHONY: help
help: ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# ------------------------------------------------------------------------------------ the two that matter

.PHONY: run
run: $(VENV)/.run ## A durable broker on localhost:9092, data in ./data
	@exec $(BIN)/barnabas serve $(ARGS)

PARTS := check-and-prepare unit-and-property compiled-and-real faults interop browser

.PHONY: test
test: ## Everything that must be green, and the seconds of each part
	@table='' failed=''; \
	for part in $(PARTS); do \
		begun=$$(date +%s); \
		$(MAKE) --no-print-directory $$part || failed=$$part; \
		table+=$$(printf '%6d s  %s' $$(($$(date +%s) - begun)) "$$part$${failed:+ failed}")$$'\n'; \
		[ -z "$$failed" ] || break; \
	done; \
	printf '\n== %s\n%s' 'seconds of each part' "$$table"; \
	[ -z "$$failed" ] || { echo "make test: $$failed failed" >&2; exit 1; }; \
	printf '\nmake test: all passed\n'

# Compiling keeps a processor busy, and what is installed the network; then the checks and the packages
# do, beside each other. In a new checkout collecting takes what is left.
.PHONY: check-and-prepare
check-and-prepare: $(VENV)/.dev $(VENV)/.compiler ## What `make test` begins with: checks and packages, beside them the compiling
	@$(MAKE) --no-print-directory $(COMPILED)/.built & compiling=$$!; \
	$(MAKE) --no-print-directory build/.collected & collecting=$$!; \
	{ $(MAKE) --no-print-directory $(VENV)/.counterparts \
		&& $(MAKE) --no-print-directory check-and-package; } || { kill $$compiling $$collecting; exit 1; }; \
	wait $$compiling; wait $$collecting

.PHONY: check-and-package
check-and-package: $(VENV)/.interop ## Both at once: each of them keeps one processor busy
	$(call both,package,check)

# ------------------------------------------------------------------------------------------------ set-up

$(BIN)/python:
	@if [ -z "$(PYTHON)" ]; then \
		echo "make: Python 3.11 or newer is needed: install it, or say which with PYTHON=..." >&2; \
		exit 1; \
	fi
	@if ! "$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then \
		echo "make: $(PYTHON) is not Python 3.11 or newer" >&2; \
		exit 1; \
	fi
	@if ! "$(PYTHON)" -m venv $(VENV); then \
		rm -rf $(VENV); \
		echo "make: $(PYTHON) cannot make a virtual environment; on Debian and Ubuntu" \
			"install the package python3-venv" >&2; \
		exit 1; \
	fi

$(VENV)/.run: pyproject.toml | $(BIN)/python
	@echo "Installing Barnabas into $(VENV)"
	@$(PIP) --editable .
	@touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	@echo "Installing the tools and the test clients into $(VENV)"
	@$(PIP) --editable '.[test,dev]'
	@touch $@ $(VENV)/.run

$(VENV)/.interop: pyproject.toml $(VENV)/.dev
	@echo "Installing Spark into $(VENV)"
	@$(PIP) --editable '.[interop]'
	@touch $@

$(VENV)/.counterparts: $(VENV)/.interop $(wildcard tests/counterparts/*.py tests/counterparts/*.txt) \
		spark_connector/session/jars.py spark_connector/session/java.py
	@echo "Fetching Java, Apache Kafka's and Spark's jars, kcat, Chromium, and PostgreSQL"
	@$(BIN)/python -m tests.counterparts fetch
	@touch $@

.PHONY: setup
setup: $(VENV)/.counterparts ## Install everything the tests need

# ------------------------------------------------------------------------------------------------ checks

.PHONY: check
check: format-check lint types imports scripts check-generated commits tidy ## All checks that start no process of a broker

.PHONY: format-check
format-check: $(VENV)/.dev ## Is the code laid out as `make format` does it?
	$(call heading,format)
	@$(BIN)/ruff format --check . || { echo "make: run 'make format'" >&2; exit 1; }

.PHONY: format
format: $(VENV)/.dev ## Lay out the code and sort the imports
	@$(BIN)/ruff check --select I --fix --quiet .
	@$(BIN)/ruff format .

.PHONY: lint
lint: $(VENV)/.dev ## ruff
	$(call heading,lint)
	@$(BIN)/ruff check --output-format concise .

.PHONY: types
types: $(VENV)/.dev ## mypy --strict
	$(call heading,types)
	@$(BIN)/mypy

.PHONY: imports
imports: $(VENV)/.dev ## The contracts between the packages
	$(call heading,imports)
	@$(BIN)/lint-imports --no-logo

.PHONY: scripts
scripts: $(VENV)/.dev ## The console's JavaScript: types by TypeScript's compiler, slips by Biome
	$(call heading,scripts)
	@$(BIN)/python -m tests.javascript

.PHONY: tidy
tidy: $(VENV)/.dev ## House rules that no tool knows
	$(call heading,tidy)
	@$(PYTEST) --quiet tests/tidy

.PHONY: commits
commits: $(VENV)/.dev ## Subjects of the commits: length, imperative
	$(call heading,commit subjects)
	@$(BIN)/python -m tests.tidy.commits

.PHONY: generate
generate: $(VENV)/.dev ## Write protocol/messages from protocol/schemas
	@$(BIN)/python -m barnabas.protocol.generate

.PHONY: check-generated
check-generated: $(VENV)/.dev ## Are protocol/messages and the generated pages of docs/ current?
	$(call heading,generated code and documentation)
	@$(BIN)/python -m barnabas.protocol.generate --check
	@$(BIN)/python -m barnabas.broker.config.pages.reference --check
	@$(BIN)/python -m barnabas.broker.api.permissions_page --check
	@$(BIN)/python -m tests.site.compatibility --check
	@$(BIN)/python -m tests.site.http_api --check
	@$(BIN)/python -m tests.site.metrics --check
	@$(BIN)/python -m tests.site.spark_options --check

.PHONY: docs-configuration
docs-configuration: $(VENV)/.dev ## Write docs/configuration.md from the tables of keys
	@$(BIN)/python -m barnabas.broker.config.pages.reference

.PHONY: docs-permissions
docs-permissions: $(VENV)/.dev ## Write docs/permissions.md from the table of checks
	@$(BIN)/python -m barnabas.broker.api.permissions_page

.PHONY: docs-compatibility
docs-compatibility: $(VENV)/.dev ## Write docs/kafka-compatibility.md from the routes
	@$(BIN)/python -m tests.site.compatibility

.PHONY: docs-http-api
docs-http-api: $(VENV)/.dev ## Write docs/http-api.md from the routes of the HTTP port
	@$(BIN)/python -m tests.site.http_api

.PHONY: docs-metrics
docs-metrics: $(VENV)/.dev ## Write docs/metrics.md from the metrics of brokers in simulated time
	@$(BIN)/python -m tests.site.metrics

.PHONY: docs-spark-options
docs-spark-options: $(VENV)/.dev ## Write docs/spark-options.md from the sources of the Spark connector
	@$(BIN)/python -m tests.site.spark_options

.PHONY: vendor
vendor: $(VENV)/.dev ## Fetch the console's libraries again; ARGS=--accept after another version in vendor.json
	@$(BIN)/python -m tests.javascript.vendor $(ARGS)

# ------------------------------------------------------------------------------------------------- tests

.PHONY: quick
quick: $(VENV)/.dev ## Check the changed files, and run the tests of their modules
	@$(BIN)/python -m tests.quick

.PHONY: walks
walks: $(VENV)/.dev ## Count the files that Produce, Fetch, EndTxn and a Spark commit enter
	@$(BIN)/python -m tests.walks.counted

UNIT_PYTEST := $(STRICT_PYTEST) --quiet -m "not hypothesis and not nightly"

# First what only computes, then what needs the machine, whether or not the first is green. Without the
# three brokers at random: five minutes of processor time, interpreted.
.PHONY: unit
unit: $(VENV)/.dev ## Unit tests, with ARGS for pytest
	$(call heading,unit tests)
	@computing=0; \
	$(if $(ARGS),,$(UNIT_PYTEST) -p tests.pinned $(PARALLEL) --ignore=tests/cluster/test_at_random.py \
		$(filter-out tests/real,$(UNIT)) || computing=$$?;) \
	$(UNIT_PYTEST) $(CROWDED) $(or $(ARGS),tests/real) && exit $$computing

# `make compiled` runs these files, as the image has the code. `make nightly` runs them interpreted, and
# `make unit` all but the three brokers at random.
IGNORED = $(addprefix --ignore=,$(COMPILED_UNIT))

.PHONY: unit-and-property
unit-and-property: $(VENV)/.dev ## Both at once: the tests are collected only once
	$(call heading,unit and property tests)
	@$(STRICT_PYTEST) -p tests.pinned --quiet $(PARALLEL) -m "not nightly" $(or $(ARGS),$(filter-out tests/real $(COMPILED_UNIT),$(UNIT)) $(IGNORED))

.PHONY: real
real: $(VENV)/.dev ## The unit tests that need the machine, and wait for it
	$(call heading,unit tests that need the machine)
	@$(STRICT_PYTEST) --quiet $(CROWDED) -m "not nightly" $(or $(ARGS),tests/real $(IGNORED))

# In a new checkout pytest rewrites the asserts of every file that it imports and keeps the result,
# ours of src/ included, which have a plugin: two thirds of what collecting costs. Four workers that
# begin together would each do it. Later only files that change are rewritten. This runs while Spark is
# being installed: files that import Spark are left out, and tests.without_spark refuses to import Spark
# on every machine.
COLLECTED := $(UNIT) $(addprefix tests/,crash attack postgresql soak torture) \
	$(filter-out tests/interop/test_spark.py,$(wildcard tests/interop/test_*.py))

build/.collected: | $(VENV)/.dev
	@mkdir -p build
	@$(PYTEST) -p tests.without_spark --quiet --quiet --collect-only $(COLLECTED) >build/collected.log \
		|| { cat build/collected.log; exit 1; }
	@touch $@

.PHONY: property
property: $(VENV)/.dev ## Property tests (HYPOTHESIS_PROFILE=exhaustive for a long run)
	$(call heading,property tests)
	@$(STRICT_PYTEST) --quiet $(PARALLEL) -m "hypothesis and not nightly" $(or $(ARGS),$(UNIT))

.PHONY: crash
crash: $(VENV)/.dev ## kill -9, and power cuts on the simulated disk
	$(call heading,crash tests)
	@$(PYTEST) --quiet $(CROWDED) -m "not nightly" $(or $(ARGS),tests/crash)

.PHONY: faults
faults: $(VENV)/.counterparts ## Crash tests and attacks, and PostgreSQL beside them: each waits half of its time
	$(call both,postgresql,crash attack-small)

# The modules that pyproject.toml names for mypyc, as the image has them; everything else beside
# them as it is. Built from an sdist, since the hook builds where the sources are.
SOURCES := pyproject.toml $(shell find -L src -name '*.py')
SDIST := build/sdist/.built
COMPILED := build/compiled
COMPILED_UNIT := tests/compiled tests/storage tests/real/storage tests/coordinator/transactions \
	tests/broker/world tests/cluster/test_at_random.py tests/cluster/test_garbage.py \
	$(addprefix tests/protocol/test_,codec_fuzz.py codec_round_trip.py frame.py header.py records.py tuned.py wire.py) \
	tests/broker/test_pytest_plugin.py $(addprefix tests/real/test_,testing.py tls_transport.py)
COMPILE := HATCH_BUILD_HOOK_ENABLE_MYPYC=1

$(SDIST): $(SOURCES) $(VENV)/.dev
	@rm -rf $(@D)
	@$(BIN)/python -m build --sdist --no-isolation --outdir $(@D) . >/dev/null
	@touch $@

$(VENV)/.compiler: $(VENV)/.dev tests/counterparts/compiler.py
	@$(BIN)/python -m tests.counterparts compiler
	@touch $@

$(COMPILED)/.built: $(SDIST) $(VENV)/.compiler
	@echo "Compiling Barnabas into $(COMPILED): a minute or two"
	@rm -rf $(COMPILED)
	@$(COMPILE) $(PIP) --no-deps --no-build-isolation --target $(COMPILED) build/sdist/*.tar.gz
	@touch $@

.PHONY: compiled
compiled: $(COMPILED)/.built ## The unit tests of what the image has compiled, compiled
	$(call heading,compiled)
	@PYTHONSAFEPATH=1 PYTHONPATH=$(CURDIR)/$(COMPILED):$(CURDIR) $(PYTEST) -p tests.pinned --quiet $(PARALLEL) \
		--import-mode=append --assert=plain --override-ini=pythonpath= -m "not nightly" \
		$(or $(ARGS),$(COMPILED_UNIT))

.PHONY: compiled-and-real
compiled-and-real: $(COMPILED)/.built ## Both at once: one computes, the other waits half of its time
	$(call both,real,compiled)

# What these targets start as processes is what the image has. `make crash COMPILED=` starts the sources.
ON_COMPILED := unit-and-property real crash interop nightly browser browser-soak postgresql attack-small attack \
	spark-crash bench-cluster soak soak-memory soak-cluster torture nemesis nemesis-cluster controls \
	prove-seeds

ifneq ($(COMPILED),)
$(ON_COMPILED): $(COMPILED)/.built
$(ON_COMPILED): export BARNABAS_PACKAGES := $(CURDIR)/$(COMPILED)
endif

.PHONY: interop
interop: $(VENV)/.counterparts ## Other people's clients, Spark and Apache Kafka's tools
	$(call heading,interop tests)
	@$(PYTEST) --quiet $(IN_SIXES) -m "not nightly" $(or $(ARGS),tests/spark tests/interop tests/soak tests/torture)

.PHONY: nightly
nightly: $(VENV)/.counterparts ## What left `make test`, Apache Kafka beside its record, all crash tables, and DURATION= of each fault
	$(call heading,nightly tests)
	@$(if $(ARGS),,$(BIN)/python -m tests.counterparts tools)
	@RECORD=check $(PYTEST) --quiet $(IN_SIXES) -m "nightly or recorded" $(or $(ARGS),tests/spark tests/interop tests/soak tests/torture)
	@$(if $(ARGS),,$(PYTEST) --quiet $(CROWDED) -m nightly tests/crash tests/attack tests/postgresql tests/real)
	@$(if $(ARGS),,$(PYTEST) --quiet -m nightly tests/package)
	@$(if $(ARGS),,ORDER=$$RANDOM $(STRICT_PYTEST) -p tests.backwards --quiet $(CROWDED) -m "not nightly" $(UNIT) tests/crash tests/attack)
	@$(if $(ARGS),,$(PYTEST) --quiet $(CROWDED) -m nightly tests/broker tests/spark_connector tests/cluster tests/protocol)
	@SHAPES=full $(PYTEST) --quiet tests/attack/shapes
	@$(if $(ARGS),,LOOKS=full $(PYTEST) --quiet $(CROWDED) tests/browser)
	@$(if $(ARGS),,for part in spark-crash soak torture torture-simulated soak-cluster; do \
		$(MAKE) --no-print-directory $$part || exit 1; done)

.PHONY: record
record: $(VENV)/.counterparts ## Record anew what `make test` compares with instead of Apache Kafka: tests/interop/recorded
	$(call heading,record of Apache Kafka)
	@RECORD=1 $(PYTEST) --quiet $(IN_SIXES) -m recorded $(or $(ARGS),tests/interop)

PART ?= 1/1

.PHONY: mutants
mutants: $(VENV)/.counterparts ## Faults put into the product, one at a time: a test must fail (PART=1/4; ARGS=S8)
	$(call heading,mutants)
	@$(BIN)/python -m tests.mutants --part $(PART) --jobs $(JOBS) $(ARGS)

.PHONY: browser
browser: $(VENV)/.counterparts ## The console in a browser (LOOKS=full: both themes, with pictures in build/browser)
	$(call heading,browser tests)
	@$(PYTEST) --quiet $(CROWDED) -m "not nightly" $(or $(ARGS),tests/browser)

.PHONY: docs-pictures
docs-pictures: $(VENV)/.counterparts ## Take the pictures of docs/console.md, of a broker with clients
	@$(PYTEST) --quiet tests/browser/docs_pictures.py

# MkDocs has an environment of its own, as nothing else needs it.
SITE := $(VENV)-site

$(SITE)/.installed: tests/site/requirements.txt | $(BIN)/python
	@echo "Installing MkDocs into $(SITE)"
	@$(BIN)/python -m venv --clear $(SITE)
	@$(SITE)/bin/python -m pip --disable-pip-version-check --quiet install --requirement $<
	@touch $@

.PHONY: site
site: $(SITE)/.installed ## The documentation as a site that needs no server: build/site/index.html
	@$(SITE)/bin/python -m tests.site.assemble
	@NO_MKDOCS_2_WARNING=1 $(SITE)/bin/mkdocs build --quiet

.PHONY: site-versions
site-versions: $(SITE)/.installed ## Add this checkout as VERSION= to the sites in the local branch `site-pages`
	@[ -n "$(VERSION)" ] || { echo "make: say which with VERSION=0.1.0" >&2; exit 1; }
	@$(SITE)/bin/python -m tests.site.assemble
	@PATH=$(CURDIR)/$(SITE)/bin:$$PATH NO_MKDOCS_2_WARNING=1 mike deploy --config-file mkdocs-versions.yml \
		--branch site-pages --update-aliases $(VERSION) latest
	@PATH=$(CURDIR)/$(SITE)/bin:$$PATH NO_MKDOCS_2_WARNING=1 mike set-default --config-file mkdocs-versions.yml --branch site-pages latest

.PHONY: browser-soak
browser-soak: $(VENV)/.counterparts ## What an open page costs, with 10,000 partitions (DURATION=)
	@DURATION=$(DURATION) $(PYTEST) --quiet $(or $(ARGS),tests/browser/long_look.py)

# Each test has servers of its own, and waits for them as long as it computes.
.PHONY: postgresql
postgresql: $(VENV)/.counterparts ## What a cluster keeps in PostgreSQL, on a primary and a standby that die
	$(call heading,PostgreSQL)
	@$(PYTEST) --quiet $(CROWDED) -m "not nightly" $(or $(ARGS),tests/postgresql)

# Each has a broker, its good neighbour and an attacker, and waits half of its time.
.PHONY: attack-small
attack-small: $(VENV)/.dev ## Clients that mean harm, each for seconds; `make attack` for longer
	$(call heading,attacks)
	@$(PYTEST) --quiet $(CROWDED_FILES) -m "not nightly" $(or $(ARGS),tests/attack)

.PHONY: spark-crash
spark-crash: $(VENV)/.counterparts ## Every row of the crash tables of the Spark sinks, and the heap over 100 batches; an hour
	$(call heading,Spark crash tables)
	@$(PYTEST) --quiet $(or $(ARGS),$(wildcard tests/spark/full_*.py))

.PHONY: package
package: $(VENV)/.interop ## The wheel, installed and run outside of this directory
	$(call heading,package)
	@$(PYTEST) --quiet -m "not nightly" $(or $(ARGS),tests/package)

# The newest Spark, in an environment of its own; the interop tests have the one before.
COMPAT := $(VENV)-compat
COMPAT_TESTS := tests/interop/test_spark.py $(addprefix tests/spark/test_,by_name.py crash_table.py \
	data_source.py monitor.py pipeline.py sinks.py)

$(COMPAT)/.installed: pyproject.toml $(VENV)/.counterparts
	@echo "Installing Spark $(COMPAT_SPARK) into $(COMPAT)"
	@$(BIN)/python -m venv $(COMPAT)
	@$(COMPAT)/bin/python -m pip --disable-pip-version-check --quiet install \
		--editable '.[spark,test]' 'build>=1.6' 'hatchling>=1.33' 'protobuf>=6.33.5' \
		'pyspark[connect,pipelines]==$(COMPAT_SPARK)'
	@touch $@

.PHONY: compat
compat: $(COMPAT)/.installed ## The Spark tests with the newest Spark
	$(call heading,compat)
	@$(COMPAT)/bin/python -m pytest --quiet $(or $(ARGS),$(COMPAT_TESTS))

BENCH_PYTHON ?= $(PYTHON)
BENCH := $(VENV)-bench

$(BENCH)/.installed: $(SDIST) $(VENV)/.compiler
	@echo "Compiling Barnabas for $(BENCH_PYTHON) into $(BENCH): a minute or two"
	@"$(BENCH_PYTHON)" -m venv --clear $(BENCH)
	@$(COMPILE) $(BENCH)/bin/python -m pip --disable-pip-version-check --quiet install build/sdist/*.tar.gz
	@touch $@

.PHONY: bench
bench: $(VENV)/.counterparts $(BENCH)/.installed ## Side by side with Apache Kafka; writes docs/benchmarks.md
	@$(BIN)/python -m tests.bench --python $(BENCH)/bin/python $(ARGS)

.PHONY: bench-cluster
bench-cluster: $(VENV)/.counterparts ## Three brokers beside three of Apache Kafka; writes docs/benchmarks-cluster.md
	@$(BIN)/python -m tests.bench.cluster $(ARGS)

# What `make bench-pairs` compares with: the baseline and BEFORE, compiled for the checkout's Python.
EARLIER = $(shell cat tests/bench/BASELINE) $(BEFORE)

build/before-%/.built: | $(VENV)/.compiler
	@echo "Compiling Barnabas of $* into $(@D): a minute or two"
	@rm -rf $(@D) && mkdir -p $(@D)/source
	@git archive $* | tar --extract --directory $(@D)/source
	@$(BIN)/python -m build --sdist --no-isolation --outdir $(@D)/sdist $(@D)/source >/dev/null
	@$(COMPILE) $(PIP) --no-deps --no-build-isolation --target $(@D)/packages $(@D)/sdist/*.tar.gz
	@touch $@

.PHONY: bench-pairs
bench-pairs: $(VENV)/.dev $(COMPILED)/.built $(EARLIER:%=build/before-%/.built) ## This checkout beside the baseline and BEFORE=<revision>; writes docs/benchmarks-before-after.md
	@$(BIN)/python -m tests.bench.pairs $(foreach each,$(EARLIER),$(each)=build/before-$(each)/packages) \
		$$(git describe --always --dirty)=$(COMPILED) $(ARGS)

.PHONY: bench-instructions
bench-instructions: $(VENV)/.dev $(COMPILED)/.built $(EARLIER:%=build/before-%/.built) ## Instructions of a request, beside the baseline's (valgrind; needs no quiet machine)
	@$(BIN)/python -m tests.bench.instructions $(foreach each,$(EARLIER),$(each)=build/before-$(each)/packages) \
		$$(git describe --always --dirty)=$(COMPILED) $(ARGS)

DURATION ?= 3600

.PHONY: soak
soak: $(VENV)/.counterparts ## Groups under random faults for an hour (DURATION=seconds)
	@$(BIN)/python -m tests.soak --duration $(DURATION) $(ARGS)

.PHONY: soak-memory
soak-memory: $(VENV)/.dev ## Every load of the benchmark for minutes: memory stays flat (DURATION=)
	@$(BIN)/python -m tests.soak.memory --duration $(DURATION) $(ARGS)

.PHONY: torture-simulated
torture-simulated: $(COMPILED)/.built ## Three brokers in simulated time (SEEDS=, SEED=, SECONDS=): a failure comes again
	@PYTHONSAFEPATH=1 PYTHONPATH=$(CURDIR)/$(COMPILED):$(CURDIR) $(BIN)/python -m tests.torture.simulated --seeds $(or $(SEEDS),200) $(if $(SEED),--seed $(SEED)) \
		--seconds $(or $(SECONDS),600) $(ARGS)

.PHONY: torture
torture: $(VENV)/.counterparts ## Transactions under random faults for an hour (DURATION=, SEED=)
	@$(BIN)/python -m tests.torture --duration $(DURATION) $(if $(SEED),--seed $(SEED)) $(ARGS)

.PHONY: prove-seeds
prove-seeds: $(VENV)/.counterparts ## Ten programs under `barnabas prove` (SEEDS=20, PROGRAMS=a,b, SECONDS=60, JOBS=4); it continues an interrupted run
	@$(BIN)/python -m tests.interop.prove_seeds --seeds $(or $(SEEDS),20) $(if $(PROGRAMS),--programs $(PROGRAMS)) \
		--seconds $(or $(SECONDS),60) --jobs $(if $(filter command%,$(origin JOBS)),$(JOBS),4) $(ARGS)

ROUNDS ?= 500

.PHONY: nemesis
nemesis: $(VENV)/.counterparts ## Flushes while PostgreSQL crashes, fails over and splits, for an hour (ROUNDS=, SEED=)
	@$(BIN)/python -m tests.postgresql.nemesis --rounds $(ROUNDS) $(if $(SEED),--seed $(SEED)) $(ARGS)

.PHONY: nemesis-cluster
nemesis-cluster: ROUNDS = 60
nemesis-cluster: $(VENV)/.counterparts ## The same over three brokers, their links and clients (ROUNDS=, SECONDS=, SEED=)
	@$(BIN)/python -m tests.postgresql.cluster_nemesis --rounds $(ROUNDS) --seconds $(or $(SECONDS),60) $(if $(SEED),--seed $(SEED)) $(ARGS)

.PHONY: controls
controls: $(VENV)/.counterparts ## What the nemesis of a cluster would see, broken on purpose; and full disks, as root
	@$(PYTEST) --quiet tests/postgresql/broken_rules.py tests/postgresql/full_disk.py $(ARGS)

.PHONY: soak-cluster
soak-cluster: $(VENV)/.counterparts ## Clients of a cluster of which a broker dies every 5 s, for an hour (DURATION=, SEED=; ARGS='--clients programs --brokers objects')
	@$(BIN)/python -m tests.torture.soak_turns --seconds $(DURATION) $(if $(SEED),--seed $(SEED)) $(ARGS)

.PHONY: attack
attack: $(VENV)/.dev ## Clients that mean harm for an hour (DURATION=, SEED=), and the largest requests
	@SHAPES=full $(PYTEST) --quiet tests/attack/shapes
	@$(MAKE) --no-print-directory torture-simulated SEEDS=200
	@$(BIN)/python -m tests.attack --duration $(DURATION) $(if $(SEED),--seed $(SEED)) $(ARGS)

.PHONY: demo
demo: $(VENV)/.counterparts ## Five million payments through Spark while all that runs is killed
	@$(BIN)/python -m tests.interop.demo_spark $(or $(ARGS),--plot docs/exactly_once_spark.png)

.PHONY: demo-exactly-once
demo-exactly-once: $(VENV)/.dev ## Exactly once in four scenarios: docs/exactly-once.md
	@$(BIN)/python -m tests.interop.demo_exactly_once

# ----------------------------------------------------------------------------------------------- release

.PHONY: release
release: $(VENV)/.dev ## Check and build a release into dist, and stop before it is published (VERSION=0.1.0)
	@$(BIN)/python -m tests.counterparts tools
	@$(BIN)/python -m tests.package.release $(or $(VERSION),$(error make release needs VERSION=x.y.z)) $(ARGS)

SDIST_FILE ?= $(wildcard build/sdist/*.tar.gz)

.PHONY: wheels
wheels: $(VENV)/.dev $(SDIST) ## The compiled wheels of each Python for this processor, in containers (needs docker)
	@$(PIP) 'cibuildwheel>=4.3,<5'
	@SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) \
		$(BIN)/python -m cibuildwheel --platform linux --output-dir dist/wheels $(SDIST_FILE)

# ------------------------------------------------------------------------------------------------- image

COMPOSE := docker compose --file docker/compose.yaml

.PHONY: image
image: ## The container image, by docker, podman or buildah (see docker/build)
	@docker/build

.PHONY: image-check
image-check: $(VENV)/.dev ## Build the image from Debian's packages, run it; needs root, no engine
	$(call heading,image)
	@$(PYTEST) --quiet $(ONE_MORE) $(or $(ARGS),tests/image)

.PHONY: up
up: ## A broker in a container on localhost:9092
	@$(COMPOSE) up --build --detach --wait

.PHONY: down
down: ## Stop it; its data stays in a volume
	@$(COMPOSE) down

# ------------------------------------------------------------------------------------------------- other

.PHONY: clean
clean: ## Remove what was built and installed here; ./data stays
	@rm -rf $(VENV) $(COMPAT) $(BENCH) $(SITE) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
