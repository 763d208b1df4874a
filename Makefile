# Each target works as the first command on a machine with python3 and make: .ci/venv makes the environment it needs.
#   ARGS     passed on to what the target runs
#   PYTHON   the Python to make .venv with, where python3 is not the one

.DEFAULT_GOAL := help
.PHONY: bench clean demo help lint soak test
export PYTHON

demo: ## agents that get better while tracecomb learns from their traces, in under a minute
	@sh .ci/venv base
	@.venv/bin/tracecomb demo $(ARGS)

test: ## run the tests
	@sh .ci/venv dev
	@.venv/bin/python -m pytest $(ARGS)

lint: ## check style and types
	@sh .ci/venv dev
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	.venv/bin/mypy

bench: ## run the benchmarks
	@sh .ci/venv bench
	@.venv/bin/python -m tests.bench $(ARGS)

soak: ## harm workers and their Kafka for as long as ARGS say (--minutes M), then see that nothing is lost or doubled
	@sh .ci/venv dev
	@.venv/bin/python -m tests.kafka.faults $(ARGS)

clean: ## remove .venv and caches
	rm -rf .venv .hypothesis .mypy_cache .pytest_cache .ruff_cache build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

help: ## say what there is
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-6s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
