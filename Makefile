# `make demo` and `make test` need Python 3.11+, make and a package index; they make .venv themselves.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/installed

.PHONY: demo test check serve bench clean

demo: $(STAMP)
	$(BIN)/python -m examples.demo

test: $(STAMP)
	$(BIN)/python -m pytest -n 2 --dist loadfile --max-worker-restart 0

check: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

serve: $(STAMP)
	$(BIN)/nornweave up

bench: $(STAMP)
	$(BIN)/python -m evals.bench

clean:
	rm -rf .venv var

# Installing costs minutes once; the stamp makes a second run cost nothing until the pins change.
$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --disable-pip-version-check --quiet --constraint constraints.txt --editable '.[dev]'
	touch $(STAMP)
