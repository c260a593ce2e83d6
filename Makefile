# make demo       compares the methods on the built-in graph: a table and a picture
# make test       format, lint, types, architecture and tests
# make test-slow  the slow tests: kills, fuzzing, PyG compatibility
# make test-gpu   the tests that need a GPU
# make test-oldest  the fast tests of the package with the oldest versions of everything,
#                 in .venv-oldest; on Linux PyTorch brings gigabytes of CUDA libraries
# make check-gpu  compiles the GPU kernels for eight targets, without a GPU
# make docs       the pages of docs/ as a site in build/docs; a warning is an error
# make dist       wheel and source distribution in dist/
# make bench      speed and memory next to PyG, as ratios measured in one run
# Each needs Python 3.11 or newer and nothing else; the first run installs into .venv.
# Tests that read real datasets need their raw files in a folder of TEMPERGAT_MIRROR;
# without it they are skipped, and the summary at the end says so.

PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# Two test processes share two cores: one thread each. Programs that tests start find
# modules compiled. Tests of a file stay together, and share what they set up. Some
# virtual machines name AMX and do not have it: torch's bfloat16 products end a process.
PYTEST = OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 \
	$(BIN)/python -m pytest -n 2 --dist worksteal -rs

.PHONY: demo test test-slow test-gpu test-oldest check-gpu docs dist bench clean

demo: .venv/installed
	$(BIN)/tempergat compare

test: .venv/installed
	$(BIN)/ruff format --check src tests tools benchmarks examples docs studies
	$(BIN)/ruff check src tests tools benchmarks examples docs studies
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(PYTEST) -m "not slow"

test-slow: .venv/installed
	$(PYTEST) -m slow

test-gpu: .venv/installed
	$(PYTEST) -m gpu

# Old versions use what newer versions of others call deprecated.
OF_PACKAGE := $(addprefix tests/,base stats nn ops sampling data training comparison cli)
test-oldest: BIN := .venv-oldest/bin
test-oldest: .venv-oldest/installed
	$(PYTEST) -m "not slow" -W ignore::DeprecationWarning $(OF_PACKAGE)

# WRITE=1 writes benchmarks/results/gpu_kernels.csv anew.
check-gpu: .venv/installed
	$(BIN)/python -m tools.check_gpu $(if $(WRITE),--write)

docs: .venv/installed
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs build/docs
	@echo "open build/docs/index.html"

dist: .venv/installed
	rm -rf dist
	$(BIN)/python -m build

bench: .venv/installed
	$(BIN)/python -m benchmarks.attention_cpu
	$(BIN)/python -m benchmarks.edge_features
	$(BIN)/python -m benchmarks.small_graphs --device cpu
	$(BIN)/python -m benchmarks.molecules
	$(BIN)/python -m benchmarks.small_batches
	$(BIN)/python -m benchmarks.seeds --device cpu
	$(BIN)/python -m benchmarks.data_load

.venv/installed: pyproject.toml constraints.txt $(wildcard CMakeLists.txt src/tempergat/ops/cpu/csrc/* src/tempergat/ops/cpu/csrc/*/*)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "tempergat needs Python 3.11 or newer, found $$($(PYTHON) --version); set PYTHON=..."; exit 1; }
	@echo "1 of 3: an environment in .venv: seconds"
	@$(PYTHON) -m venv .venv
	@echo "2 of 3: compiling the CPU kernels: about five minutes of one core, over all cores"
	@$(PIP) --no-deps -e .
	@echo "3 of 3: installing torch, PyG and the tools for tests and pages: minutes, most of them downloads"
	@$(PIP) -c constraints.txt 'tempergat[dev,docs]'
	@touch $@

.venv-oldest/installed: pyproject.toml constraints-oldest.txt
	@echo "installing into .venv-oldest: gigabytes, and compiling takes a few minutes"
	$(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-oldest.txt -e '.[dev]'
	@touch $@

clean:
	rm -rf .venv .venv-oldest build dist tempergat-out
