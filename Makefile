# Everything a checkout needs, from nothing but Python 3.11 to 3.13 (with its headers), a C++ compiler and make.
# Another Python: make PYTHON=python3.12 test

PYTHON ?= $(shell scripts/find_python)
RUN := scripts/run

.DEFAULT_GOAL := help
.PHONY: help env build lint test demo bench soak soak-node clean

help:  ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

env:
	@echo "== set-up"
	@$(PYTHON) scripts/setup_env.py

build: env  ## create .venv from the pinned requirements and build the package into install/
	@echo "== build"
	@$(RUN) python scripts/build.py

lint: env  ## ruff on everything, mypy on the engine
	@echo "== ruff"
	@$(RUN) ruff check .
	@echo "== mypy"
	@$(RUN) mypy

# Each file of tests stays whole and in its order in one of the two processes: tests of a file share nodes and stores.
test: build lint  ## build, lint and run all tests, two files at a time
	@echo "== tests"
	@$(RUN) python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

demo: build  ## play five minutes in a home to the node, ask all ten tools, compare with the truth
	@echo "== demo"
	@$(RUN) python -m examples.home_patrol.demo

build/bench_packages: requirements/bench.txt
	@$(RUN) python -m pip install --quiet --no-deps --upgrade --target $@ -r $<
	@touch $@

bench: build build/bench_packages  ## measure the engine beside its closest peer, figures into build/bench_engine.json
	@echo "== bench"
	@PYTHONPATH=$(CURDIR)/build/bench_packages $(RUN) \
	  python -m benchmarks.engine --n 50000 --peer emem --json build/bench_engine.json

build/plot_packages: requirements/plot.txt
	@$(RUN) python -m pip install --quiet --no-deps --upgrade --target $@ -r $<
	@touch $@

soak: build build/plot_packages  ## live 30 simulated days and watch memory, file and jobs, plot into docs/soak.png
	@echo "== soak"
	@PYTHONPATH=$(CURDIR)/build/plot_packages $(RUN) \
	  python -m benchmarks.soak --days 30 --json build/soak.json --plot docs/soak.png

soak-node: build  ## the same for the node
	@echo "== soak-node"
	@$(RUN) python -m benchmarks.soak_node

clean:  ## remove what build, tests and tools made (.venv stays)
	rm -rf build install log .mypy_cache .pytest_cache .ruff_cache .hypothesis *.egg-info
	find . -path ./.venv -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +
