# `make demo` and `make test` set up everything they need; `make help` lists the rest.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.DEFAULT_GOAL := help

.PHONY: help setup demo story test fuzz live compose-test faults soak bench bench-failover check format docs release dashboards clean lock

help:  ## Say what each target does
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 21

setup: $(READY)  ## Make .venv with everything pinned in requirements-dev.lock

$(READY): requirements-dev.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Sceneloom needs Python 3.11 or newer; try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@echo "Setting up .venv (once; a few minutes) …"
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

demo: $(READY)  ## Make out/lighthouse.mp4: no keys, no Docker, no Java
	@$(BIN)/sceneloom demo

story: $(READY)  ## A provider fails, a worker is killed, a retry: every picture is paid for once
	@$(BIN)/sceneloom story

test: $(READY)  ## Run all tests, on a real Kafka where one can be had; PYTEST="-n 0" in one process
	$(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder $(PYTEST)

MAX_USD ?= 0.25
live: $(READY)  ## Buy one asset of each kind: make live PROVIDER=name MAX_USD=0.25
	@test -n "$(PROVIDER)" || { echo "name the account: make live PROVIDER=ark, with SCENELOOM_ARK_KEY set"; exit 2; }
	@$(BIN)/python -m sceneloom.testing.live "$(PROVIDER)" --max-usd "$(MAX_USD)"

fuzz: MINUTES ?= 10
fuzz: $(READY)  ## Look for what nobody thought of: make fuzz MINUTES=10
	@end=$$(( $$(date +%s) + 60 * $(MINUTES) )); while [ $$(date +%s) -lt $$end ]; do \
	  SCENELOOM_FUZZ=long $(BIN)/python -m pytest -q -m fuzz --timeout=0 || exit 1; done

compose-test: $(READY)  ## Run the whole stack in containers, kill a worker, read every figure; ten minutes
	$(BIN)/python -m tests.compose

SEED ?= 1
faults: $(READY)  ## Try every way to die, ten minutes: make faults SCENARIO=4 SEED=7 repeats one
	$(BIN)/python -m tests.faults $(if $(SCENARIO),--scenario $(SCENARIO)) --seed $(SEED) $(if $(RUNS),--runs $(RUNS)) $(if $(UNPROTECTED),--unprotected)

soak: MINUTES ?= 30
soak: $(READY)  ## Kill workers at random for MINUTES=30, and judge again and again
	$(BIN)/python -m tests.faults.soak --minutes $(MINUTES) --seed $(SEED) $(if $(KILLS),--kills $(KILLS))

bench: $(READY)  ## Measure a worker with 50 000 jobs in flight; three minutes
	$(BIN)/python -m benchmarks

bench-failover: $(READY)  ## Kill and restart one of two workers with 2 000 open projects; ten minutes
	$(BIN)/python -m benchmarks.failover

check: $(READY)  ## Lint, types, import walls, dependencies, docs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pyright
	$(BIN)/lint-imports
	$(BIN)/deptry .
	$(BIN)/python docs/generate.py --check
	$(BIN)/python monitoring/dashboards.py --check

format: $(READY)  ## Format the code
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

docs: $(READY)  ## Write the parts of docs/ that are made from the code
	$(BIN)/python docs/generate.py

dashboards: $(READY)  ## Write the dashboards in monitoring/grafana/ from monitoring/dashboards.py
	$(BIN)/python monitoring/dashboards.py

release: $(READY)  ## Keep the public schemas and what is stored as those of a release: make release NAME=2026-12
	@test -n "$(NAME)" || { echo "name the release: make release NAME=2026-12"; exit 2; }
	$(BIN)/python docs/generate.py --release
	$(BIN)/python -m tests.stored --write "$(NAME)"

lock: $(READY)  ## Pin the newest versions that pyproject.toml allows
	$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url pyproject.toml -o requirements.lock
	$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url pyproject.toml --extra tracing --extra transcription --group dev -o requirements-dev.lock

clean:  ## Remove what was made
	rm -rf .venv out data .mypy_cache .pytest_cache .ruff_cache .hypothesis
