# Two commands do everything: `make demo` and `make test`. They install what is missing and are quick the second time.
SHELL := /bin/bash
.ONESHELL:
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory

VENV := .venv
PY := $(VENV)/bin/python
BUILD := build/editable
JOBS ?= $(shell nproc)
SOURCES := $(shell find spyre glue bench tools cmake -type f \( -name '*.cpp' -o -name '*.h' -o -name '*.def' -o -name '*.inc' -o -path '*/report/page/*' -o -name 'CMakeLists.txt' -o -name '*.cmake' \) 2>/dev/null) CMakeLists.txt pyproject.toml

.PHONY: help demo test test-full fuzz bench bench-tables build format lint tidy sanitize wheel docs clean

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

demo: build/.package  ## set up, build, and run the main job
	@$(PY) examples/first_steps.py
	@echo
	@$(PY) examples/granite.py

test: build lint  ## set up, build, and run every test that fits in a few minutes
	@scripts/run_tests.sh $(BUILD) $(PY)

test-full: build lint tidy  ## the same plus clang-tidy, long sweeps, random programs and sanitizers
	@SPYRE_TEST_FULL=1 scripts/run_tests.sh $(BUILD) $(PY)

MINUTES ?= 5
SEED ?= $(shell date +%s)
fuzz: build  ## random programs against the CPU for MINUTES=5 from SEED=...; failures shrink into tests/corpus/programs
	@nice $(PY) -m tests.programs.search --minutes $(MINUTES) --seed $(SEED)

bench: build/.bench  ## every benchmark once, with small settings; each checks its results first
	@$(PY) scripts/run_bench.py --quick --build $(BUILD)

bench-tables: build/.bench  ## the measured tables of bench/README.md anew: some minutes, on a machine without other work
	@$(PY) scripts/run_bench.py --write --build $(BUILD)

build: build/.tests  ## the C++ libraries, tools, tests, benchmarks and the Python package, in .venv

build/.packages: scripts/setup_packages.sh
	@scripts/setup_packages.sh
	@mkdir -p build && touch $@

build/.venv: requirements.txt build/.packages
	@echo "== python environment ($(VENV))"
	test -x $(PY) || python3 -m venv $(VENV)
	$(PY) -m pip install --quiet --disable-pip-version-check -r requirements.txt
	touch $@

# The package, and nothing that only tests need.
build/.package: build/.venv $(SOURCES)
	@echo "== build (a first build takes some minutes)"
	scripts/show_build.sh build/package.log $(PY) -m pip install --verbose --disable-pip-version-check \
	  --no-build-isolation --no-deps -e . -C build-dir=$(BUILD) -C build.verbose=false
	touch $@

build/.test-packages: requirements-test.txt scripts/setup_packages.sh build/.venv
	@scripts/setup_packages.sh --tests
	$(PY) -m pip install --quiet --disable-pip-version-check -r requirements-test.txt
	touch $@

build/.tests: build/.package build/.test-packages
	@echo "== build of tools, tests and benchmarks"
	cmake -S . -B $(BUILD) -DSPYRE_BUILD_TESTS=ON -DSPYRE_BUILD_BENCH=ON > build/cmake.log
	scripts/show_build.sh build/tests.log cmake --build $(BUILD) -j $(JOBS)
	touch $@

build/.bench: build/.tests
	@cmake -S . -B $(BUILD) -DSPYRE_BUILD_BENCH=ON > build/cmake.log
	cmake --build $(BUILD) -j $(JOBS) | tail -1
	touch $@

CPP := find spyre glue bench tools tests -name '*.cpp' -o -name '*.h'

lint: build  ## include directions, style of C++ and Python
	@$(CPP) | xargs clang-format --dry-run -Werror
	@$(PY) scripts/check_includes.py
	@$(PY) scripts/check_docs.py
	@$(VENV)/bin/ruff check --quiet .
	@changed=$$(git diff --name-only --diff-filter=d HEAD -- 'spyre/*.cpp'); \
	  [ -z "$$changed" ] || scripts/run_tidy.sh $$changed

tidy: build/.test-packages  ## clang-tidy over the C++ layers, or over FILES=...
	@scripts/run_tidy.sh $(FILES)

format: build/.test-packages  ## rewrite sources in the project's style
	@$(CPP) | xargs clang-format -i
	@$(VENV)/bin/ruff format --quiet . && $(VENV)/bin/ruff check --quiet --fix .

sanitize: build/.test-packages  ## unit tests under the address, undefined-behaviour and thread sanitizers
	@scripts/run_sanitizers.sh

wheel: build/.venv  ## dist/*.whl, built against the installed torch, tried in a clean environment
	@rm -f dist/torch_spyre-*.whl
	@$(PY) -m pip wheel --quiet --disable-pip-version-check --no-build-isolation --no-deps -w dist .
	@$(PY) scripts/check_wheel.py dist/torch_spyre-*.whl

docs: build  ## regenerate the generated pages
	@$(PY) scripts/generate_docs.py
	@$(PY) scripts/generate_coverage.py
	@$(BUILD)/tests/timing/timing_page docs/timing.md
	@$(PY) scripts/regenerate_journey.py --bundle-tool $(BUILD)/tools/spyre-bundle

clean:  ## forget everything that was built or installed here
	@rm -rf build dist $(VENV)
