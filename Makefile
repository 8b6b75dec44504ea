# What people type. Each recipe calls a script of tools/ or a runner; the build itself is CMake's.
# Logs of every stage are in build/logs/.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
MAKEFLAGS += --no-print-directory --no-builtin-rules
.DEFAULT_GOAL := help

JOBS ?= $(shell nproc)
RANKS ?= 4
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 60
STEP := @tools/step

.PHONY: help demo build test test-all bench-streams bench-cables bench-vector-matrix bench-offload bench-dlrm bench-switch gcn handlers whole-cpp whole-python whole-firmware test-rtl test-rtl-engines test-rtl-modules test-rtl-full lint-rtl prove-rtl cluster cables bench-rtl soak-rtl soak-skip synth synth-quick ip test-ip check model soak soak-switch peers mpi torch test-torch test-doors lint format docs sanitize install uninstall wheel test-wheel coverage instructions fuzz generate clean distclean

help: ## these lines
	@sed -nE 's/^([a-z-]+):.*## (.*)/  make \1\t\2/p' Makefile | expand -t 18

demo: package ## every collective on four ranks, checked; then a network trained on four ranks
	@.venv/bin/unisono run -n $(RANKS) apps/tour/tour.py
	.venv/bin/unisono run -n $(RANKS) apps/digits/digits.py

build: package tests ## library, Python package and tests (build/release)

test: export UNISONO_DRAW = 1
test: build ## all C++ tests; Python tests of what the commit touches, and a drawn part of the others
	$(STEP) -k 3 ctest "C++ tests" ctest --preset release -j $(JOBS) --no-label-summary -LE '^rtl'
	$(STEP) -k 2 pytest "Python tests" .venv/bin/python -m pytest -q tests/python

test-all: export UNISONO_DRAW = 0
test-all: build ## everything, nothing drawn: before a release; hours
	make -k torch whole-cpp whole-python test-torch whole-firmware check model lint sanitize fuzz test-wheel docs demo test-rtl-full lint-rtl prove-rtl soak soak-rtl soak-switch

whole-cpp:
	$(STEP) -t 3600 -k 3 ctest "C++ tests" ctest --preset release -j $(JOBS) --no-label-summary -LE '^rtl'

whole-python:
	$(STEP) -t 7200 -k 1 pytest-all "Python tests" .venv/bin/python -m pytest -q tests/python

whole-firmware:
	$(STEP) firmware "collectives for RV32" .venv/bin/python firmware/build.py

test-rtl: test-rtl-engines test-rtl-modules ## tests of the hardware engine: modules, firmware, engines against the interpreter

test-rtl-engines: packages-rtl environment-rtl package
	$(STEP) rtl-build "Verilated engines" tools/build --rtl
	$(STEP) -k 3 rtl-engines "engines against the interpreter" tools/ctest 0.3 release -L '^rtl$$'
	$(STEP) -t 1500 -k 2 rtl-matrix "programs on a cluster" tools/rtl/programs

test-rtl-modules: packages-rtl environment-rtl package
	$(STEP) -t 1200 -k 18 rtl "modules" tools/rtl/test

test-rtl-full: packages-rtl environment-rtl package ## the same with more cases, surroundings and parameters: an hour
	$(STEP) rtl-build "Verilated engines" tools/build --rtl-full
	$(STEP) -k 3 rtl-engines "engines against the interpreter" ctest --preset release -L '^rtl' -j $(JOBS) --no-label-summary
	$(STEP) -t 9000 -k 2 rtl-matrix "programs on a cluster" env UNISONO_TEST_CABLES=whole tools/rtl/programs
	$(STEP) -t 4000 -k 18 rtl-full "modules, full width" tools/rtl/test --full

cluster: packages-rtl environment-rtl package ## the simulated cluster, for unisono run --platform rtl
	$(STEP) cluster "simulated cluster" tools/build --cluster

cables: packages-rtl environment-rtl package ## simulated nodes of SMI's transport, for unisono run --platform rtl --cables
	$(STEP) cables "simulated nodes" tools/build --cables

bench-streams: build cluster ## elements between kernels: channels of SMI, stream ports, streams of simulated engines; on cables, too, after make cables
	tools/bench-streams $(JSON)

bench-cables: cluster ## SMI's transport and its collectives on cables, in cycles, as JSON lines
	@tools/bench-cables

bench-vector-matrix: packages-vector-matrix package ## a layer y = W x split by columns, its parts summed, beside Open MPI
	@.venv/bin/python apps/vector_matrix/compare.py $(if $(JSON),--json $(JSON))

bench-offload: packages-vector-matrix packages-test cluster ## instructions and cache misses of that layer's sum, on the processor and handed to a device
	@.venv/bin/python apps/vector_matrix/offload.py $(if $(JSON),--json $(JSON))

bench-dlrm: cluster ## a recommendation model on ten simulated engines, beside NumPy on this machine
	@.venv/bin/python apps/dlrm/run.py $(if $(JSON),--json $(JSON))

gcn: packages-handlers package ## a graph network whose sums a switch makes: the model's times, and bits of ranks and handlers
	@.venv/bin/python apps/gcn/run.py $(if $(JSON),--json $(JSON))

bench-switch: build ## calls that a switch on this machine carries, beside UDP, TCP and Open MPI; two jobs at one switch
	@tools/bench-switch $(JSON)

bench-rtl: cluster ## the hardware engine in cycles, beside the papers' figures
	@tools/bench-rtl

soak-rtl: cluster ## random calls on four engines, ten million cycles
	$(STEP) soak-build "soak" cmake --build --preset release --target soak_rtl
	@build/release/tests/rtl/soak_rtl

soak-skip: cluster ## the same in 250 short runs, each beside engines that skip no cycle, compared in every cycle
	$(STEP) soak-build "soak" cmake --build --preset release --target soak_rtl
	@failed=; for seed in {1..250}; do build/release/tests/rtl/soak_rtl 12000 $$seed --check-skip || failed+=" $$seed"; done
	[[ -z $$failed ]] || { echo "seeds that failed:$$failed"; exit 1; }

synth: packages-rtl environment-rtl ## resources and levels of the hardware, estimated by open tools
	@tools/rtl/synthesis

synth-quick: packages-rtl environment-rtl ## the same of five parts that take seconds: warns where one has grown by more than 5 %
	$(STEP) -k 12 synthesis "resources of five parts" tools/rtl/synthesis --check move_decode credits remote_operations window_writes get_responder

ip: packages-rtl environment-rtl ## the hardware engine as an archive for other projects: sources, wrappers, firmware, IP-XACT, scripts (build/ip)
	$(STEP) -k 1 ip "the engine as an IP" tools/package-ip

test-ip: ip ## checks that archive, unpacked elsewhere, and has FuseSoC simulate two engines of it: minutes
	$(STEP) -k 1 ip-tests "what the archive says of itself" .venv/bin/python -m pytest -q tests/rtl/ip
	$(STEP) ip-environment "Python environment with FuseSoC" tools/environment requirements-ip.txt .venv-ip
	$(STEP) -t 3600 -k 3 ip-simulation "two engines sum a vector" tools/simulate-ip

lint-rtl: packages-rtl environment-rtl ## both Verilators and slang on every module
	$(STEP) -k 1 rtl-lint "RTL lint" tools/rtl/lint

prove-rtl: packages-rtl environment-rtl ## formal proofs of the hardware's building blocks
	$(STEP) -k 1 rtl-formal "RTL proofs" tools/rtl/formal

check: package ## prove every program of every algorithm
	@.venv/bin/unisono check

model: packages-test ## check the models of wake-ups, of agreement and of slots in a switch: all interleavings
	@tools/model

soak: package ## random calls whose ranks are killed and stopped, on one host and over each network by turns, ten minutes
	@PYTHONPATH=python:tests/python .venv/bin/python -m conformance.soak

soak-switch: packages-handlers package ## jobs at three switches that are killed, stopped and sent rubbish, ten minutes
	@PYTHONPATH=python:tests/python .venv/bin/python -m switch.soak

peers: packages-peers environment-dev package environment-peers ## installs Open MPI, MPICH and mpi4py, and builds what `unisono bench` measures
	$(STEP) peers "benchmark and its peers" tools/build --peers

mpi: packages-peers package ## installs Open MPI and MPICH, and builds what carries their programs (unisono mpirun)
	$(STEP) mpi "shims for programs of MPI" tools/build --mpi

torch: environment-torch package ## installs torch for `import unisono.torch`, in .venv-torch
	@.venv-torch/bin/python -c 'import torch; print("  torch", torch.__version__, "in .venv-torch; python/ must be on its path")'

handlers: packages-handlers package ## installs clang 14, by which unisono switch compile reads handlers in C

test-torch: torch ## torch's own distributed tests on Unisono, beside gloo: a table
	@.venv-torch/bin/python tests/pytorch/table.py

test-doors: torch mpi tests ## the doors: PyTorch, MPI, SHMEM
	$(STEP) -k 2 pytest-mpi "tests of programs of MPI" .venv/bin/python -m pytest -q tests/python/mpi
	$(STEP) -k 2 pytest-shmem "tests of SHMEM" .venv/bin/python -m pytest -q tests/python/shmem
	$(STEP) -k 2 pytest-torch "tests of the torch backend" .venv/bin/python -m pytest -q tests/python/pytorch
	$(STEP) -k 30 test-torch "torch's own tests" .venv-torch/bin/python tests/pytorch/table.py

instructions: packages-test package ## instructions and cache lines of small calls, counted, against those on record
	$(STEP) bench "benchmark" cmake --build --preset release --target bench_overhead
	@tools/instructions --check

lint: build ## formatting, clang-tidy, ruff, mypy
	$(STEP) clang-format "clang-format" tools/clang-format --check
	$(STEP) clang-tidy "clang-tidy" tools/clang-tidy
	$(STEP) ruff "ruff check" .venv/bin/ruff check .
	$(STEP) ruff-format "ruff format" .venv/bin/ruff format --check .
	$(STEP) mypy "mypy --strict" tools/mypy
	$(STEP) generate "generated files are current" .venv/bin/python -m spec.generator --check

format: packages-test environment-dev ## formats all sources
	@tools/clang-format
	.venv/bin/ruff format -q .

docs: environment-dev ## the documentation site (build/site)
	$(STEP) docs "documentation" .venv/bin/mkdocs build --strict

sanitize: packages-test ## C++ tests under the address, undefined-behaviour and thread sanitizers
	$(STEP) -t 3600 -k 3 asan "address, undefined behaviour" tools/sanitize asan
	$(STEP) -t 3600 -k 3 tsan "threads" tools/sanitize tsan

install: library ## library, headers, CMake and pkg-config files below PREFIX (/usr/local)
	@tools/install "$(PREFIX)"

uninstall: ## removes what `make install` has put below PREFIX
	@tools/install --remove "$(PREFIX)"

wheel: environment-dev ## build/dist/unisono-*.whl, self-contained, with its manylinux tag
	$(STEP) -k 2 wheel "wheel" tools/wheel

test-wheel: wheel ## the wheel in a new environment, far from the checkout
	$(STEP) -k 1 test-wheel "the wheel in a new environment" .venv/bin/python -m pytest -q tests/wheel

coverage: packages-test environment-dev ## which lines of engine, network and driver the tests reach (build/coverage)
	$(STEP) -t 7200 -k 5 coverage "coverage" tools/coverage

fuzz: packages-fuzz ## every decoder with altered input, FUZZ_SECONDS (60) each, under sanitizers
	$(STEP) -t 7200 -k 12 fuzz "altered input" tools/fuzz $(FUZZ_SECONDS)

generate: environment-dev ## writes what is generated from spec/
	@.venv/bin/python -m spec.generator

clean: ## removes what was built
	@rm -rf build
	find python -name '*.so' -delete

distclean: clean ## and the Python environments
	@rm -rf .venv .venv-peers .venv-torch .venv-ip

# The steps below look for themselves whether there is anything to do.
.PHONY: packages-build packages-test packages-rtl packages-peers packages-fuzz packages-vector-matrix packages-handlers environment environment-dev environment-rtl environment-peers environment-torch library package tests

packages-build:
	@tools/packages build

packages-test:
	@tools/packages test

packages-rtl:
	@tools/packages rtl

packages-peers:
	@tools/packages peers

packages-vector-matrix:
	@tools/packages vector-matrix

packages-handlers:
	@tools/packages handlers

packages-fuzz:
	@tools/packages fuzz

environment-rtl: packages-rtl
	$(STEP) environment-rtl "Python environment with HDL tools" tools/environment requirements-rtl.txt

environment-peers: packages-peers
	$(STEP) environment-peers "Python environment of the peers" tools/environment requirements-peers.txt .venv-peers

environment-torch: packages-build
	$(STEP) environment-torch "Python environment with torch" tools/environment requirements-torch.txt .venv-torch

environment: packages-build
	$(STEP) environment "Python environment" tools/environment requirements.txt

environment-dev: packages-build
	$(STEP) environment-dev "Python environment" tools/environment requirements-dev.txt

library: environment
	$(STEP) library "library and Python extension" tools/build

package: library
	$(STEP) package "Python package" tools/package

tests: packages-test environment-dev
	$(STEP) tests "C++ tests" tools/build --tests
