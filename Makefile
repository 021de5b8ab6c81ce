# Two commands on a machine that has Python 3.11 or newer and nothing else:
#   make demo    installs into .venv, anonymizes a built-in video, shows where the results are
#   make test    installs into .venv, runs linters, type checks and the whole test suite

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check install --quiet -c constraints.txt

.PHONY: demo test lint bench clean help

help:
	@sed -n '1,3s/^# \{0,1\}//p' Makefile

demo: $(VENV)/.installed
	$(BIN)/vidveil demo

test: $(VENV)/.installed-dev lint
	$(BIN)/python -m pytest -n auto

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python tools/words.py

bench: $(VENV)/.installed
	$(BIN)/python benchmarks/video_speed.py

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "vidveil needs Python 3.11 or newer: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)

# The stamps are older than what they were made from when a dependency changes, and only then does pip run again.
$(VENV)/.installed: pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing vidveil into $(VENV) (once: from the internet, over a gigabyte with torch, some minutes)"
	$(PIP) -e .
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	@echo "installing the tools for tests into $(VENV) (once)"
	$(PIP) -e '.[dev]'
	@touch $@

clean:
	rm -rf $(VENV) vidveil_demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
