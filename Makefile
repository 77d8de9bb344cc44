# `make demo` and `make test` need Python 3.11 to 3.14, make and a package index; they make .venv themselves.
PYTHON ?= python3
BIN := .venv/bin
# What running needs, and what developing needs beside it (requirements/).
RUNTIME := .venv/installed-runtime
UV := build/lock/bin/uv
DEVELOPMENT := .venv/installed-development
PIP := $(BIN)/python -m pip --disable-pip-version-check
# Exactly what the locks name: every file by its hash, nothing built here but this project.
# Twice quiet: pip would warn of every place of the user's configuration that lacks a package.
LOCKED := install --quiet --quiet --no-deps --no-compile --only-binary :all: --require-hashes --requirement
PROJECT := install --quiet --quiet --no-deps --no-build-isolation --editable .

.PHONY: demo test test-fast rings check platforms docs image check-image bill audit lock serve bench clean

demo: $(RUNTIME)
	$(BIN)/python -m examples.demo

# The longest files come first (tests/conftest.py); xdist would sort them by their number of tests.
# Many tests start processes: each would compile torch and Dagster anew where Python may not keep bytecode (30 s against 13).
# For two cores: workers wait for processes that they have started and for time that has to pass, some two fifths of it.
WORKERS ?= 4
# They make files durable tens of thousands of times, and wait for the disk each time: where there is room they use a folder in memory.
SHARED_MEMORY := /dev/shm
HAS_ROOM = test "$$(df --output=avail $(SHARED_MEMORY) | tail -1)" -gt 6000000 && ! grep -q ' $(SHARED_MEMORY) .*noexec' /proc/mounts
IN_MEMORY = $(shell ($(HAS_ROOM)) 2>/dev/null && echo TMPDIR=$(SHARED_MEMORY))
test: $(DEVELOPMENT)
	env -u PYTHONDONTWRITEBYTECODE $(IN_MEMORY) $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder --max-worker-restart 0

# The inner ring, while one works: pure stages, settings and the contract of the stores.
FAST := access architecture chunking conflicts facts files fusion ledger parsing quality routing settings text
test-fast: $(DEVELOPMENT)
	env -u PYTHONDONTWRITEBYTECODE $(IN_MEMORY) $(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow" $(FAST:%=tests/%) tests/store/test_store_contract.py

# The same in small on every other Python that this machine has.
rings: $(DEVELOPMENT) $(UV)
	$(IN_MEMORY) .ci/rings $(UV)

check: $(DEVELOPMENT) bill
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

serve: $(RUNTIME)
	$(BIN)/nornweave up

bench: $(DEVELOPMENT)
	$(BIN)/python -m lab.bench

# The documentation as a site in build/docs/site; its search needs a server: python -m http.server --directory build/docs/site
docs: $(DEVELOPMENT)
	$(BIN)/python -m lab.site build/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict --config-file build/docs/mkdocs.yml

# With docker, else podman. LOCK=runtime adds LiteLLM, PyMuPDF and vss; LOCK=workers TAG=nornweave:workers is for deploy/compose.large.yaml.
ENGINE ?= $(shell docker info >/dev/null 2>&1 && echo docker || echo podman)
LOCK ?= image
TAG ?= nornweave
BASE ?= debian:12.12-slim
image:
	$(ENGINE) build $(if $(findstring podman,$(ENGINE)),--format docker) --build-arg BASE=$(BASE) --build-arg LOCK=$(LOCK) $(BUILD_OPTIONS) --file deploy/Dockerfile --tag $(TAG) .

check-image:
	ENGINE='$(ENGINE)' RUN_OPTIONS='$(RUN_OPTIONS)' deploy/check_image.sh $(TAG)

clean:
	rm -rf .venv var build

SUPPORTED := import sys; sys.exit("NornWeave needs Python 3.11 or newer, and $(PYTHON) is %s: name another one with make PYTHON=..." % sys.version.split()[0] if sys.version_info < (3, 11) else 0)
# Installing costs minutes once; the stamps make a second run cost nothing until the locks change.
$(RUNTIME): pyproject.toml requirements/runtime.txt
	@$(PYTHON) -c '$(SUPPORTED)'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(PIP) $(LOCKED) requirements/runtime.txt
	$(PIP) $(PROJECT)
	touch $(RUNTIME)

# Of torch the build for CPUs where the index has it, else the one for GPUs with the libraries that it does not load without.
$(DEVELOPMENT): $(RUNTIME) requirements/development.txt requirements/torch-cpu.txt requirements/torch.txt
	$(PIP) $(LOCKED) requirements/development.txt
	$(PIP) $(LOCKED) requirements/torch-cpu.txt || $(PIP) $(LOCKED) requirements/torch.txt
	# Else each worker of the first run compiles everything at once, for 12 s of processor time each.
	env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest --collect-only >/dev/null || true
	touch $(DEVELOPMENT)

# What is installed and under which licences, without asking anybody: build/sbom.cdx.json (CycloneDX) and build/licences.md.
BILL := build/sbom.cdx.json
bill: $(DEVELOPMENT)
	mkdir -p build
	$(BIN)/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible --no-validate --output-file $(BILL) $(BIN)/python
	$(BIN)/python requirements/bill.py $(BILL) build/licences.md

# Whether every locked package has a wheel for each system and Python; needs the index.
platforms: $(DEVELOPMENT) $(UV)
	$(BIN)/python requirements/platforms.py $(UV) requirements/runtime.txt requirements/image.txt requirements/workers.txt requirements/drift.txt

# Asks the index whether an advisory names a locked version; no tool can know without (docs/decisions/0015-supply-chain.md).
# What the index does not know was not looked up: that fails as well.
AUDITED := development runtime workers image drift
audit:
	test -x build/audit/bin/pip-audit || { $(PYTHON) -m venv build/audit && build/audit/bin/python -m pip install --quiet pip-audit==2.10.1; }
	for lock in $(AUDITED); do \
	  build/audit/bin/pip-audit --strict --disable-pip --require-hashes --requirement requirements/$$lock.txt || exit 1; done

# After a change of dependencies; needs the index. A version stays as it is locked unless pyproject.toml forbids it.
COMPILE := $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header
# What `make demo` and `make serve` use.
RUNNING := --extra hnsw --extra llm --extra office --extra pymupdf --extra ui
SHARED := filelock fsspec jinja2 markupsafe mpmath networkx setuptools sympy typing-extensions
# Of the packages that drift imports, for what it never does with them.
UNUSED_IN_DRIFT := pygments
$(UV):
	$(PYTHON) -m venv build/lock
	build/lock/bin/python -m pip install --quiet --quiet uv==0.13.8

lock: $(UV)
	$(COMPILE) pyproject.toml requirements/always.in $(RUNNING) --output-file requirements/runtime.txt
	$(COMPILE) pyproject.toml requirements/always.in --extra office --extra ui --output-file requirements/image.txt
	$(COMPILE) pyproject.toml requirements/always.in $(RUNNING) --extra workers --output-file requirements/workers.txt
	$(COMPILE) pyproject.toml requirements/always.in --extra dev --no-emit-package torch --output-file requirements/development.txt
	$(COMPILE) requirements/drift.in --no-config --constraint requirements/runtime.txt $(UNUSED_IN_DRIFT:%=--no-emit-package %) --output-file requirements/drift.txt
	echo torch==2.13.0 | $(COMPILE) - --no-config $(SHARED:%=--no-emit-package %) --output-file requirements/torch.txt
