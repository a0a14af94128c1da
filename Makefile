# Everything a person types. On a fresh Debian or Ubuntu machine `make demo` and `make test` set up all they need:
# system packages (apt-get, only what is missing), .venv with the versions of requirements/, and the build.
#
#   make demo          profile the bundled GPT; leaves demo.leadline and demo.html
#   make build         build and install into .venv (editable: Python changes need no rebuild)
#   make test          all checks and tests; what CI runs
#   make lint          formats, types, import table, file lengths, schema freshness
#   make lint-deep     the same with clang-tidy's analyzer following calls
#   make test-cpp      C++ unit tests under the address, undefined and thread sanitizers (test-address, test-thread)
#   make test-aarch64  the same tests cross-compiled for ARM64, under qemu
#   make test-python   pytest, longest files first; a failure is tried again only where tests/flaky.json lists it
#   make durations     measure how long each test file takes; writes tests/durations.json
#   make test-pythons  build and torch-free tests on every CPython found (pyenv, PATH)
#   make test-python-next  CPython 3.14 with torch 2.14, and 3.15, in Debian systems of their own (debootstrap, root; downloads 1 GB; NEXT=3.14)
#   make test-python-next-short  3.15 alone: build, self-tests, one measured program
#   make ui            build the page from ui/ into the package (the result is committed; needs node)
#   make vsix          the extension for VS Code, build/leadline.vsix (needs node)
#   make test-ui       the tests of the page's model (Vitest)
#   make reference     write docs/rules/ and the list of rules from the code
#   make docs          build the site of docs/ into build/site, links checked (downloads mkdocs-material)
#   make wheel         manylinux wheels for every CPython found, into dist/ (WHEELS=3.11 for one)
#   make cross-wheel   wheels for ARM64 and for a CPython that is not here, with headers of Debian's (WHEELS=3.11-aarch64 for one)
#   make release       what a release consists of, in dist/, checked and tried; publishing is the command that it prints
#   make test-vscode   the extension in a real VS Code in the browser (downloads 300 MB)
#   make test-wheel    use them where there is no compiler, and in Debian's smallest system (debootstrap, root)
#   make attack        hostile programs, bare and measured, for every set of options
#   make simulation    programs drawn by SEEDS=10000 seeds; what they did against what their profiles say
#   make soak          ten minutes of threads, forks, windows and rolling files: memory and handles stay; 30 kills while forking
#   make nightly       everything that takes too long for each change, one after the other; says at the end what failed
#   make test-serving  tests/serving on a real vLLM (nightly; needs a Python with vllm: SERVING_PYTHON=...)
#   make test-torch TORCH=2.4.1   the whole suite on another release of PyTorch (downloads gigabytes)
#   make test-jax VERSION=0.8.0   tests/jax on another release of JAX (downloads 100 MB)
#   make test-jax-short   part of tests/jax on an older release of JAX, as in `make test` (OLDER_JAX=0.8.0)
#   make test-tf       tests/tensorflow on real TensorFlow (TENSORFLOW=2.21.0; downloads 300 MB)
#   make test-triton   real Triton, and Inductor for a GPU, over the fake GPU (downloads Triton, 190 MB)
#   make test-rocm61   AMD's declarations against the headers of ROCm 6.1 (downloads 200 MB)
#   make test-pjrt     our tables against JAX's real CUDA plug-in, without a GPU (downloads 300 MB)
#   make test-foreign  invariants over programs of other people: transformers, diffusers, torch_geometric, ... (downloads)
#   make bench         measure cost on this machine; writes bench/results/
#   make fuzz stress   long-running tests, outside CI
#   make storm         ten minutes of walks in signal handlers, 10,000 a second, under the address sanitizer, then ten of `--cpu-sample` (STORM=600)
#   make long-run      a million small steps: memory and file stay as they were (an hour or more)
#   make format        rewrite sources in the project's format
#   make clean         remove what was built (keeps .venv)

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
.NOTPARALLEL:
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

PYTHON ?= python3
JOBS ?= $(shell nproc)
WERROR ?= OFF
VENV := .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/.stamps
PIP := $(BIN)/python -m pip --disable-pip-version-check -q
CONSTRAINTS := requirements/test-constraints.txt

# What was compiled before is not compiled again, in whatever folder it was. A machine without ccache reads headers once.
ifneq ($(shell command -v ccache),)
export CMAKE_C_COMPILER_LAUNCHER := ccache
export CMAKE_CXX_COMPILER_LAUNCHER := ccache
export CCACHE_BASEDIR := $(CURDIR)
export CCACHE_NOHASHDIR := 1
endif

# A check that passed on this machine with the same inputs is not run again; LEADLINE_PROVE_AGAIN=1 runs all.
PROVEN := $(PYTHON) tools/proven.py
# Not $(MAKE): `make -n` would run it, do nothing, and have that remembered as passed.
AGAIN := make --no-print-directory
NATIVE_INPUTS := native cmake schema CMakeLists.txt Makefile

NATIVE_SOURCES := $(shell find native cmake -type f) CMakeLists.txt pyproject.toml leadline.pth
CPP_FILES = $(filter-out %_generated.h,$(shell find native -name '*.h' -o -name '*.c' -o -name '*.cc' -o -name '*.cpp'))

.PHONY: help docs reference ui vsix test-ui build demo test lint lint-deep format test-cpp test-address test-thread test-aarch64 durations test-python test-pythons test-python-next test-python-next-short test-torch test-jax test-jax-short test-tf test-triton test-foreign test-vscode prove-address prove-thread prove-aarch64 prove-jax-short test-package \
  test-rocm61 test-pjrt wheel cross-wheel release test-wheel bench fuzz stress storm attack simulation soak long-run nightly clean

help:
	@sed -n 's/^#   make/make/p' Makefile

$(STAMPS)/venv:
	PYTHON="$(PYTHON)" tools/system_packages.sh build
	"$(PYTHON)" -m venv $(VENV)
	mkdir -p $(STAMPS)
	touch $@

$(STAMPS)/demo: $(STAMPS)/venv requirements/demo.txt $(CONSTRAINTS)
	$(PIP) install -r requirements/demo.txt -c $(CONSTRAINTS)
	touch $@

$(STAMPS)/test: $(STAMPS)/demo $(CONSTRAINTS) requirements/vendor-headers.txt tests/js/package-lock.json ui/package-lock.json
	PYTHON="$(PYTHON)" tools/system_packages.sh test
	npm ci --prefix tests/js --no-audit --no-fund --loglevel=error & readers=$$!
	npm ci --prefix ui --no-audit --no-fund --loglevel=error & page=$$!
	$(PIP) install --no-compile -r $(CONSTRAINTS)
	$(PIP) install --no-deps -r requirements/vendor-headers.txt
	$(BIN)/python tools/rocm_headers.py build/vendor/rocm
	$(BIN)/python tools/sanitizer_headers.py build/vendor/sanitizer
	wait $$readers
	wait $$page
	touch $@

$(STAMPS)/build: $(STAMPS)/demo $(NATIVE_SOURCES)
	CMAKE_BUILD_PARALLEL_LEVEL=$(JOBS) $(PIP) install --no-build-isolation --no-deps --config-settings cmake.define.LEADLINE_PORTABLE=OFF --config-settings cmake.define.LEADLINE_WERROR=$(WERROR) -e .
	touch $@

build: $(STAMPS)/build

demo: build
	$(BIN)/leadline demo

# What is shipped is compiled without a warning; a user's newer compiler may have new ones.
test: WERROR := ON
test: lint test-cpp test-aarch64 test-package test-ui test-python test-jax-short

lint: $(STAMPS)/test
	@tools/lint.sh $(BIN) $(JOBS)

# clang-tidy's static analyzer follows calls; `make lint` has it look at each function by itself.
lint-deep: $(STAMPS)/test
	@tools/lint.sh $(BIN) $(JOBS) --deep

format: $(STAMPS)/test
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .
	clang-format -i $(CPP_FILES)
	tests/js/node_modules/.bin/prettier --write "ui/**/*.{ts,tsx,mjs}" "tests/js/*.mjs"

comma := ,
ADDRESS := -DLEADLINE_SANITIZE=address$(comma)undefined -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="-O1 -g1"

# $(call cpp_tests,FOLDER,CMAKE OPTIONS,TARGET)
define cpp_tests
	cmake -S . -B build/$(1) -G Ninja -DLEADLINE_PYTHON=OFF -DLEADLINE_TESTS=ON $(2) >/dev/null
	cmake --build build/$(1) -j $(JOBS) --target $(3)
	ctest --test-dir build/$(1) --output-on-failure -j $(JOBS)
endef

# Optimised as far as the sanitizers' authors advise, with lines for their reports: half the time that -O2 -g takes.
# Benchmarks and libraries without tests are compiled once, with the first.
test-cpp: test-address test-thread

test-address test-thread test-aarch64: test-%: $(STAMPS)/test
	@$(PROVEN) $* $(NATIVE_INPUTS) -- $(AGAIN) prove-$*

prove-address:
	@$(call cpp_tests,address,$(ADDRESS),all)

prove-thread:
	@$(call cpp_tests,thread,-DLEADLINE_SANITIZE=thread -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="-O1 -g1",leadline_tests)

prove-aarch64:
	@$(call cpp_tests,aarch64,-DCMAKE_TOOLCHAIN_FILE=cmake/aarch64-linux-gnu.cmake -DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1,leadline_tests)

ui/node_modules: ui/package-lock.json
	npm ci --prefix ui --no-audit --no-fund --loglevel=error
	touch $@

ui: ui/node_modules
	npm --prefix ui --silent run check
	npm --prefix ui --silent run build

vsix: ui/node_modules
	npm --prefix ui --silent run check
	node ui/vscode/build.mjs

# The extension in a real VS Code in the browser.
test-vscode: $(STAMPS)/test $(STAMPS)/build
	PYTHON="$(PYTHON)" tools/system_packages.sh vscode
	tools/code_server.sh .cache/code-server
	$(BIN)/python -m pytest -q tests/vscode

test-ui: ui/node_modules
	@$(PROVEN) ui ui -- npm --prefix ui --silent test

test-python: $(STAMPS)/test $(STAMPS)/build
	$(BIN)/python tools/test_python.py $(JOBS)

durations: $(STAMPS)/test $(STAMPS)/build
	$(BIN)/python tools/test_python.py $(JOBS) --durations-file

test-pythons: $(STAMPS)/test
	$(BIN)/python tools/test_pythons.py

NEXT ?= 3.14 3.15
test-python-next: $(STAMPS)/test
	PYTHON="$(PYTHON)" tools/system_packages.sh bare
	$(BIN)/python tools/next_python.py $(NEXT)

test-python-next-short: $(STAMPS)/test
	PYTHON="$(PYTHON)" tools/system_packages.sh bare
	$(BIN)/python tools/next_python.py 3.15 --short

TORCH ?= 2.4.1
test-torch: $(STAMPS)/test
	"$(PYTHON)" -m venv .venv-torch-$(TORCH)
	grep -vE "^(torch|numpy)==" $(CONSTRAINTS) > .venv-torch-$(TORCH)/requirements.txt
	.venv-torch-$(TORCH)/bin/python -m pip install -q torch==$(TORCH) "numpy<2.3" -r .venv-torch-$(TORCH)/requirements.txt
	.venv-torch-$(TORCH)/bin/python -m pip install -q --no-deps -r requirements/vendor-headers.txt
	.venv-torch-$(TORCH)/bin/python -m pip install -q --no-build-isolation --no-deps -e .
	.venv-torch-$(TORCH)/bin/python -m pytest -q -n $(JOBS) -m "not slow" --strict-skips

VERSION ?= 0.8.0
test-jax: $(STAMPS)/test
	"$(PYTHON)" -m venv .venv-jax-$(VERSION)
	.venv-jax-$(VERSION)/bin/python -m pip install -q -r requirements/torch-free.txt -c $(CONSTRAINTS)
	.venv-jax-$(VERSION)/bin/python -m pip install -q jax==$(VERSION) jaxlib==$(VERSION)
	.venv-jax-$(VERSION)/bin/python -m pip install -q --no-build-isolation --no-deps -e .
	.venv-jax-$(VERSION)/bin/python -m pytest -q tests/jax

# An older JAX before that of the test environment, with everything else as it is there: part of tests/jax, in half a minute.
OLDER_JAX ?= 0.8.0
OLDER_JAX_IN := .cache/jax-$(OLDER_JAX)
SHORT_OF_JAX := $(addprefix tests/jax/test_,counts.py programs.py trace_window.py settings.py)
test-jax-short: $(STAMPS)/test $(STAMPS)/build
	@$(PROVEN) jax-$(OLDER_JAX) $(NATIVE_INPUTS) python tests/jax tests/conftest.py requirements -- $(AGAIN) prove-jax-short

prove-jax-short:
	if ! $(BIN)/python -c "import jax" 2>/dev/null; then echo "skipped: JAX is not installed for this Python"; exit 0; fi; \
	rm -rf $(OLDER_JAX_IN) && \
	$(BIN)/python -m pip install -q --no-deps --target $(OLDER_JAX_IN) jax==$(OLDER_JAX) jaxlib==$(OLDER_JAX) && \
	PYTHONPATH="$(CURDIR)/$(OLDER_JAX_IN)" $(BIN)/python -m pytest -q -n $(JOBS) $(SHORT_OF_JAX)

TENSORFLOW ?= 2.21.0
test-tf: $(STAMPS)/test
	"$(PYTHON)" -m venv .venv-tf-$(TENSORFLOW)
	.venv-tf-$(TENSORFLOW)/bin/python -m pip install -q tensorflow-cpu==$(TENSORFLOW)
	.venv-tf-$(TENSORFLOW)/bin/python -m pip install -q rich scikit-build-core nanobind pytest pytest-timeout
	.venv-tf-$(TENSORFLOW)/bin/python -m pip install -q --no-build-isolation --no-deps -e .
	.venv-tf-$(TENSORFLOW)/bin/python -m pytest -q tests/tensorflow

# The headers of the last ROCm without rocprofiler-sdk, out of a wheel of 200 MB.
test-rocm61: $(STAMPS)/test
	$(BIN)/python tools/rocm_headers.py build/vendor/rocm61 triton==3.0.0
	$(BIN)/python -m pytest -q tests/amd/test_roctracer_abi.py

# In a place of its own: beside the plug-in JAX looks for a GPU in every other test.
test-pjrt: $(STAMPS)/test
	"$(PYTHON)" -m venv .venv-pjrt
	.venv-pjrt/bin/python -m pip install -q -r requirements/torch-free.txt -c $(CONSTRAINTS)
	jax=$$(sed -n 's/^jax==\([0-9.]*\).*/\1/p' $(CONSTRAINTS))
	.venv-pjrt/bin/python -m pip install -q "jax==$$jax" "jaxlib==$$jax"
	.venv-pjrt/bin/python -m pip install -q --no-deps "jax-cuda13-pjrt==$$jax"
	.venv-pjrt/bin/python -m pip install -q --no-build-isolation --no-deps -e .
	.venv-pjrt/bin/python -m pytest -q tests/jax/test_plugin.py

TRITON ?= 3.6.0
test-triton: $(STAMPS)/test
	"$(PYTHON)" -m venv .venv-triton
	.venv-triton/bin/python -m pip install -q -r requirements/demo.txt pytest -c $(CONSTRAINTS)
	.venv-triton/bin/python -m pip install -q --no-deps triton==$(TRITON)
	.venv-triton/bin/python -m pip install -q --no-build-isolation --no-deps -e .
	.venv-triton/bin/python -m pytest -q tests/nvidia/test_triton.py tests/eventtools/test_triton_interpreter.py

test-foreign: $(STAMPS)/test
	"$(PYTHON)" -m venv .venv-foreign
	.venv-foreign/bin/python -m pip install -q -r $(CONSTRAINTS) -r requirements/foreign.txt
	.venv-foreign/bin/python -m pip install -q --no-build-isolation --no-deps -e .
	mkdir -p build
	.venv-foreign/bin/python -m tests.foreign.run --results build/foreign.md

# In an environment of its own: what mkdocs needs is not what tests are pinned to.
docs: $(STAMPS)/build
	test -x .venv-docs/bin/mkdocs || { "$(PYTHON)" -m venv .venv-docs && .venv-docs/bin/python -m pip install -q -r requirements/docs.txt; }
	$(BIN)/python tools/reference.py --site build/docs
	NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --strict --quiet
	@echo "open build/site/index.html"

reference: $(STAMPS)/build
	$(BIN)/python tools/reference.py

WHEELS ?=
wheel: $(STAMPS)/test
	$(BIN)/python tools/build_wheels.py $(WHEELS)

# After `make wheel`: the Python files are those of a wheel in dist/.
cross-wheel: $(STAMPS)/test
	$(BIN)/python tools/cross_wheels.py $(WHEELS)

release: wheel cross-wheel
	$(BIN)/python tools/release.py

test-wheel: $(STAMPS)/test
	PYTHON="$(PYTHON)" tools/system_packages.sh bare
	$(BIN)/python tools/test_wheel.py $(WHEELS)
	$(BIN)/python tools/test_wheel.py --bare

# The wheel of this Python alone, in an empty environment: what a new user installs. Made of what `build` has compiled.
test-package: $(STAMPS)/test $(STAMPS)/build
	version=$$($(BIN)/python -c "import sys; print('%d.%d' % sys.version_info[:2])")
	$(BIN)/python tools/build_wheels.py --here
	$(BIN)/python tools/test_wheel.py $$version

bench: build
	for script in import_time overhead memory load; do $(BIN)/python bench/$$script.py; done

fuzz: $(STAMPS)/test $(STAMPS)/build
	$(BIN)/python -m pytest -q -m slow -k fuzz

stress: $(STAMPS)/test $(STAMPS)/build
	$(BIN)/python -m pytest -q -m slow -k "not fuzz"

# What tests do for seconds, for minutes.
STORM ?= 600
storm: export LEADLINE_STORM_SECONDS := $(STORM)
storm: $(STAMPS)/test $(STAMPS)/build
	cmake -S . -B build/address -G Ninja -DLEADLINE_PYTHON=OFF -DLEADLINE_TESTS=ON $(ADDRESS) >/dev/null
	cmake --build build/address -j $(JOBS) --target test_unwind
	build/address/native/unwind/test_unwind --test-case="a storm*"
	$(BIN)/python -m pytest -q tests/cpu/test_storm.py
	LEADLINE_JAX_RUNS=200 $(BIN)/python -m pytest -q tests/jax/test_sampled_sessions.py

# Hostile programs end as they do bare, for every set of options.
attack: $(STAMPS)/test $(STAMPS)/build
	$(BIN)/python -m pytest -q -p no:cacheprovider tests/capture/attack.py

# A failing seed replays with --seed N.
SEEDS ?= 10000
simulation: $(STAMPS)/test $(STAMPS)/build
	PYTHONPATH=. $(BIN)/python -m tests.simulation.simulate --seeds $(SEEDS)

soak: $(STAMPS)/test $(STAMPS)/build
	$(BIN)/python bench/soak.py --operators 1e7 --threads 90000 --forks 1100 --windows 1000 --every 20s
	$(BIN)/python bench/hard_ends.py --results build/hard-ends

# A million steps need what a thousand do: memory, file.
long-run: $(STAMPS)/build
	$(BIN)/python bench/long_run.py --results build/long-run

# Each job for itself: one that fails does not hide what the others would say. Torch releases: those of README's support table.
NIGHTLY := test lint-deep test-vscode test-pythons test-python-next test-torch test-jax test-tf test-triton test-rocm61 test-pjrt test-foreign fuzz stress storm attack simulation soak long-run wheel cross-wheel test-wheel
nightly: export LEADLINE_PROVE_AGAIN := 1
nightly:
	failed=""
	for job in $(NIGHTLY); do
	  echo "== make $$job"
	  $(MAKE) $$job || failed="$$failed $$job"
	done
	if [ -n "$$failed" ]; then echo "nightly: failed:$$failed"; else echo "nightly: all passed"; fi
	test -z "$$failed"

clean:
	rm -rf build dist $(STAMPS)/build

SERVING_PYTHON ?= .venv/bin/python
.PHONY: test-serving
test-serving:
	$(SERVING_PYTHON) -m pytest -q tests/serving
