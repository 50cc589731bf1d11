.DEFAULT_GOAL := help
.PHONY: help build test check check-long lint fmt bench services services-down clean

# One go command a module: ./... does not cross module borders.
MODULES = $(shell go list -m -f '{{.Dir}}')

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## Build all modules, and the command into bin/
	@set -e; for m in $(MODULES); do (cd $$m && go build ./...); done
	@if [ -d cmd/postrider ]; then go build -o bin/postrider ./cmd/postrider; fi

test: ## Test all modules against the servers that run (see services)
	@set -e; env="$$(dev/services env)"; eval "$$env"; for m in $(MODULES); do (cd $$m && go test ./...); done

check: ## Everything a change must pass; starts and stops its servers
	@.ci/run

check-long: ## check with all server versions and the long tests
	@dev/check-long

lint: ## golangci-lint and shellcheck
	@dev/lint

fmt: ## Format all Go files
	@find . \( -name .services -o -name node_modules \) -prune -o -name '*.go' -print0 | xargs -0r gofmt -w

bench: ## Go benchmarks of all modules against the servers that run
	@set -e; env="$$(dev/services env)"; eval "$$env"; \
	for m in $(MODULES); do (cd $$m && go test -run '^$$' -bench . -benchmem ./...); done

services: ## Start the servers the tests need
	@dev/services up postgres15 postgres18 pgbouncer postgres15@crash postgres18@crash postgres15@e2e postgres18@e2e

services-down: ## Stop all servers; the data stays
	@dev/services down

clean: ## Delete build output, and the servers with their data
	@dev/services wipe
	@rm -rf bin dist .services
