# Everything runs in .venv, made by the first target that needs it. Needs Python 3.11+ and make, nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.stamp

# Modules are compiled once and read by every worker and child, also where the environment asks for no bytecode.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup demo test lint types unit bench docs clean

setup: $(STAMP)

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Onward needs Python 3.11 or later; set PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV) || { echo "The venv module is missing; on Debian: apt-get install python3-venv"; exit 1; }
	@echo "Fetching what Onward and its tests need into $(VENV): a minute or a few"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[zstd]" --group dev
	@touch $(STAMP)

demo: setup
	@$(BIN)/python -m onward.cli.demo .demo

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: setup
	$(BIN)/mypy

unit: setup
	$(BIN)/python -m pytest -n 4

# The test modules with their assertions rewritten, and the table of characters that texts are drawn from: else each
# worker makes them for itself, at the same time.
.PHONY: compiled
compiled: setup
	@said=$$($(BIN)/python -m pytest --collect-only -qqq) || { echo "$$said"; exit 1; }
	@$(BIN)/python -c 'from hypothesis import strategies; strategies.text().validate()'

# mypy keeps one core busy; what else comes before the tests has the other.
test: setup
	@$(MAKE) --no-print-directory -j2 types lint docs-check compiled
	@$(MAKE) --no-print-directory unit

.PHONY: docs-check
docs: setup
	$(BIN)/python docs/generate.py

docs-check: setup
	$(BIN)/python docs/generate.py --check

bench: setup
	$(PYTHON) bench/run.py

.PHONY: bench-context
bench-context: setup
	$(BIN)/python bench/tokens.py
	$(BIN)/python bench/replay.py --write

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .bench .demo
