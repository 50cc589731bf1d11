.DEFAULT_GOAL := help
.PHONY: help build build-all test check-quick check check-long campaign lint security fuzz reference fmt tidy bench scale soak docs docs-serve services services-down clean orm demo demo-crash demo-dead-letter demo-partition demo-deploy demo-stop dist chart planted mutants mutants-chosen mutants-by-rule peers peers-held peers-stock peers-table points model simulation

# Queue of the demo: rabbitmq, nats or asynq.
QUEUE ?= rabbitmq

# Settings of scale and soak.
BROKERS ?= nats kafka rabbitmq
BROKER ?= nats
FOR ?= 1h

# Each module needs its own go command: ./... does not cross module boundaries.
MODULES = $(shell go list -m -f '{{.Dir}}')

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## Build the command into bin/
	@go build -o bin/postrider ./cmd/postrider

build-all: build ## Build all modules, and the command
	@set -e; for m in $(MODULES); do (cd $$m && go build ./...); done

test: ## Test all modules against the running servers (see services)
	@set -e; env="$$(dev/services env)"; eval "$$env"; for m in $(MODULES); do (cd $$m && go test ./...); done

check-quick: ## While you work: format, lint, the core, one PostgreSQL; four minutes
	@.ci/run -tier quick

check: ## Everything a change must pass, as CI runs it; CHANGED=1 skips what your changes cannot affect
	@.ci/run $(if $(CHANGED),-changed $(CHANGED)) $(if $(RECORD),-record)

check-long: ## Nightly: all server versions, and the long forms of the tests
	@.ci/run -tier long

lint: ## golangci-lint and shellcheck
	@dev/lint

security: ## gosec, and known vulnerabilities; builds both first, which takes minutes once
	@dev/security

fuzz: ## Every fuzz target for FUZZTIME each, default 1m; needs postgres15, postgres18 and mariadb
	@dev/fuzz

reference: ## Regenerate docs/reference from the code; needs postgres15 and postgres18
	@set -e; env="$$(dev/services env)"; eval "$$env"; \
	(cd cmd/postrider/internal/cli && go test -run 'Reference$$' -update .); \
	for m in admin/console store/postgres; do (cd $$m && go test -run '^TestReference$$' -update .); done

fmt: ## Format all Go files
	@find . \( -name .services -o -name node_modules \) -prune -o -name '*.go' -print0 | xargs -0r gofmt -w

tidy: ## go mod tidy in every module, with our modules as they are here
	@go run ./dev/modules tidy

bench: ## Go benchmarks of all modules against the running servers
	@set -e; env="$$(dev/services env)"; eval "$$env"; \
	for m in $(MODULES); do (cd $$m && go test -run '^$$' -bench . -benchmem ./...); done

scale: ## Measure the constants of docs/scale.md again, a quarter of an hour on a quiet machine; BROKERS="nats redis" for others
	@dev/services up postgres18@scale $(BROKERS)
	@go build -o bin/postrider ./cmd/postrider
	@set -e; env="$$(dev/services env)"; eval "$$env"; export DATABASE_URL=$$POSTRIDER_TEST_POSTGRES18_SCALE; \
	bin/postrider bench scale $(BROKERS:%=--broker %) --json >bin/constants.json; \
	mv bin/constants.json cmd/postrider/internal/scale/measured.json; \
	cd cmd/postrider/internal/cli && go test -count=1 -run TestScalePage -update .

soak: ## Run an hour at 70 % load and check that nothing grows; FOR=10m, BROKER=rabbitmq for others
	@dev/services up postgres18@scale $(BROKER)
	@go build -o bin/postrider ./cmd/postrider
	@set -e; env="$$(dev/services env)"; eval "$$env"; export DATABASE_URL=$$POSTRIDER_TEST_POSTGRES18_SCALE; \
	bin/postrider bench soak --for $(FOR) --load 70% --broker $(BROKER) --svg bin/soak.svg --json >bin/soak.json; \
	mv bin/soak.json bin/soak.svg docs/scale/; \
	cd cmd/postrider/internal/cli && go test -count=1 -run TestScalePage -update .

docs: ## Build the documentation site into dist/docs
	@dev/services install hugo
	@rm -rf dist/docs && hugo --source docs/site --destination ../../dist/docs
	@echo "open dist/docs/index.html"

docs-serve: ## Serve the documentation site on loopback, with live reload
	@dev/services install hugo
	@hugo server --source docs/site --bind 127.0.0.1

dist: ## Build the release into dist/: archives, deb, rpm, Homebrew formula, bills of materials, checksums
	@dev/dist

chart: ## Render the Helm chart again, and check it; builds helm first, which takes minutes once
	@dev/services install helm
	@set -e; env="$$(dev/services env)"; eval "$$env"; go -C test test -count=1 -run 'Chart|Objects' ./deploy -update

points: ## Inject every fault at every statement and every broker call; needs postgres18, nats, rabbitmq
	@set -e; env="$$(dev/services env)"; eval "$$env"; CI=true POSTRIDER_LONG=1 go -C test test -count=1 -timeout 60m -run TestPoints -v ./proof/points

model: ## Check the protocols of cursor and ledger, and wrong variants of them, with TLC; POSTRIDER_LONG=1 for larger ones; needs Java
	@dev/services install tlc
	@set -e; env="$$(dev/services env)"; eval "$$env"; CI=true go -C test test -count=1 -timeout 3h -v ./proof/model

simulation: ## Run the relays through 100,000 random fault plans in simulated time; SEEDS for another number
	@POSTRIDER_SEEDS=$(or $(SEEDS),100000) go -C test test -count=1 -timeout 6h -v ./proof/simulation

planted: ## Plant known bugs, one at a time, and check that a short fault campaign detects each; BUGS="F01 F09" for some
	@go run ./test/proof/planted/cmd/planted hunt -o docs/reliability/planted.md $(BUGS)

mutants: mutants-chosen mutants-by-rule ## Plant small mistakes in the product, one at a time, and check that a test fails with each
mutants-chosen: ## Only those chosen by hand; MUTANTS="M01 M07" for some
	@set -e; env="$$(dev/services env)"; eval "$$env"; go run ./test/proof/planted/cmd/planted mutants $(MUTANTS)

mutants-by-rule: ## Only those found by rule, twelve of each package; RULE="-all retry" for others
	@set -e; env="$$(dev/services env)"; eval "$$env"; go run ./test/proof/planted/cmd/mutants $(RULE)

orm: ## Generate the code of ent and sqlc in examples/orm again; builds sqlc first, which takes minutes once
	@cd examples/orm/ent && go generate ./...
	@CGO_ENABLED=0 GOWORK=off go -C dev/tools/sqlc build -o $(CURDIR)/bin/sqlc github.com/sqlc-dev/sqlc/cmd/sqlc
	@cd examples/orm/sqlc && $(CURDIR)/bin/sqlc generate

# Settings of the campaign. One fault begins every 9 seconds.
MINUTES ?= 10
SEED ?= 0
POSTGRES ?= 15
campaign: ## Run the fault campaign, 10 minutes of it; MINUTES, SEED and POSTGRES=18 for another one
	@go build -o bin/postrider ./cmd/postrider
	@go build -o bin/campaign ./test/proof/campaign/cmd/campaign
	@bin/campaign skewed $(CURDIR)/bin/postrider-skewed
	@bin/campaign run --minutes $(MINUTES) --seed $(SEED) --postgres $(POSTGRES) --skewed $(CURDIR)/bin/postrider-skewed

# Settings of the comparison: repetitions, seconds per measurement, seconds that the old transaction stays open.
REPEAT ?= 3
SECONDS ?= 4
HOLD ?= 60
peers: ## Measure Postrider beside Debezium, Watermill, River and others, an hour; REPEAT, SECONDS and HOLD
	@test/proof/peers/run --repeat $(REPEAT) --phase $(SECONDS)s --hold $(HOLD)s

peers-held: ## The same with a transaction that stays open for ten minutes, an hour and a half
	@OUT=docs/comparison/held.jsonl test/proof/peers/run --works held --repeat 1 --hold 10m

peers-stock: ## The same with the default settings of the peers, five minutes
	@OUT=docs/comparison/stock.jsonl test/proof/peers/run --works steady --brokers kafka --stock --repeat $(REPEAT) --phase $(SECONDS)s

peers-table: ## Regenerate tables and plots of the comparison from its results
	@go run ./test/proof/peers table --page docs/comparison.md --plots docs/comparison docs/comparison/*.jsonl

services: ## Start the servers the tests need
	@dev/services up postgres15 postgres18 pgbouncer postgres15@crash postgres18@crash postgres15@e2e postgres18@e2e

services-down: ## Stop all servers; their data is kept
	@dev/services down

demo: ## Run the admissions service with real servers; QUEUE=nats or QUEUE=asynq for another queue
	@dev/services up postgres18 smtp $(subst asynq,redis,$(QUEUE))
	@go build -o bin/postrider ./cmd/postrider
	@go build -o bin/admissions ./examples/admissions
	@go build -o bin/admissions-demo ./examples/admissions/demo
	@env="$$(dev/services env)"; eval "$$env"; bin/admissions-demo up $(QUEUE)

demo-crash: ## Kill the relay and the workers of the demo under load, and check
demo-dead-letter: ## Make messages of the demo fail permanently, repair them, and check
demo-partition: ## Cut the demo off from its queue under load, and check
demo-deploy: ## Restart the demo cleanly under load, and check
demo-stop: ## Stop the demo; its data is kept
demo-crash demo-dead-letter demo-partition demo-deploy demo-stop:
	@test -x bin/admissions-demo || { echo "start it first: make demo" >&2; exit 1; }
	@env="$$(dev/services env)"; eval "$$env"; bin/admissions-demo $(@:demo-%=%)

clean: ## Delete build output, and the servers with their data
	@dev/services wipe
	@rm -rf bin dist .services
