# Everything is done from here, locally and in CI. It takes Go; tests and `make ensemble` also take Java and Maven,
# and tests Python 3.11, Node.js 20, Chromium, Ruby and C++ with their gRPC, PostgreSQL and MariaDB.

MAKEFLAGS += --no-print-directory
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# Tools are pinned by the module files below tools/ and built by Go itself.
BUF := go tool -modfile=tools/buf/go.mod buf
GOLANGCI := go tool -modfile=$(CURDIR)/tools/golangci-lint/go.mod golangci-lint
GOLANGCI_CLIENT := cd clients/go && $(GOLANGCI)
GOLANGCI_K8S := cd clients/go/k8s && $(GOLANGCI)

# The modules that `go mod tidy` looks after. The others below tools/ hold one program each and are as `go get -tool`
# wrote them: to tidy them is to download what their tests need. tools/crds holds no program but files of other projects.
MODULES := gen clients/go clients/go/k8s . tools

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: run
run: ## Start a sidecar with an ensemble in memory, until Ctrl-C; ARGS="--listen 127.0.0.1:0" for its settings
	@echo "building bin/sidekeeper: minutes the first time, seconds after that"
	@$(MAKE) --no-print-directory build
	@bin/sidekeeper dev --admin-listen 127.0.0.1:0 --console-listen 127.0.0.1:0 $(ARGS)

.PHONY: build
build: ## Build the programs into bin/
	@go build -o bin/ ./cmd/sidekeeper ./test/ensemble

UNIT = test -short -timeout 5m -p 5 -parallel 8 ./... # most tests wait, and few compute

.PHONY: unit
unit: ## Run what takes neither servers nor the network nor another language: a minute
	red=0; go $(UNIT) || red=1; go -C clients/go $(UNIT) || red=1; exit $$red

LANE := go -C tools run ./lanes

.PHONY: test
test: need ## Run all that a commit must pass: lanes whose inputs have changed, and those that always run. A quarter of an hour; LANES=python for one of them
	@$(LANE) run $(LANES)

.PHONY: test-all
test-all: need ## Run every lane of tests, whatever has passed before: an hour
	@$(LANE) run -all $(LANES)

.PHONY: nightly
nightly: need ## Run every lane, and what takes hours: models against traces, faults on real ensembles, Kubernetes. It goes on where it was stopped
	@$(LANE) run -nightly $(LANES)

.PHONY: plan
plan: ## Say which lanes `make test` would run, and why
	@$(LANE) plan

# What the tests take beyond Go: all of it is there, or is installed, or is named, before the first test runs.
.PHONY: need
need: ## Install, or else name, what the tests take beyond Go
	@tools/need git curl race java python node stubs browser databases kerberos proxies image packages

# The targets of lanes, which `make test` runs side by side.
.PHONY: test-core test-simulation test-ensembles-1 test-ensembles-2 test-peers test-endtoend-1 test-endtoend-2 test-doors test-go test-databases test-controllers test-console test-chart test-documents test-alerts
test-core: # most of these tests wait
	go test -race -parallel 6 -timeout 20m $$($(LANE) packages core)

# Every schedule, and one in ten of them with the race detector, which costs four times as much. What plays thousands has it at night.
test-simulation:
	go test -timeout 30m ./test/simulation ./test/explore
	go test -timeout 30m ./internal/zookeeper -run 'TheSchedulesCatch|Outlives'
	go test -race -timeout 30m ./test/simulation -skip 'Thousand|AskingAgainAndAgain|ABusySession'

# Two halves, each with one package at a time: each package starts ensembles, and ends some of their servers.
test-ensembles-1:
	go test -race -timeout 60m ./internal/zookeeper

test-ensembles-2:
	go test -race -p 1 -timeout 60m $$($(LANE) packages ensembles | grep -v internal/zookeeper)

# Without the race detector, for which sidecars take several times as long. At night they have it: see chaos.
test-peers:
	go test -p 1 -timeout 60m $$($(LANE) packages peers)

# Two halves, each with an ensemble of its own.
test-endtoend-1:
	go test -timeout 40m ./test/endtoend -run '$(HALF)'

test-endtoend-2:
	go test -timeout 40m ./test/endtoend -skip '$(HALF)'

HALF = ^Test[ERT]

test-doors:
	go test -timeout 20m ./test/doors

test-go:
	go -C clients/go test -race ./...
	go -C clients/go/k8s test ./... # without the race detector, for which all of client-go would be built a second time: `make go` has it

test-databases:
	go -C tools/databases test ./...

test-controllers:
	go -C tools/controllers test ./...

test-console:
	go test -race ./internal/console

test-chart:
	go test -timeout 20m ./test/chart

test-documents:
	go test -timeout 20m ./test/documents

test-alerts:
	go -C tools/alerts test ./...

# The scenarios that all clients must pass, with the clients as they are and the sidecar of now.
.PHONY: conformance-python conformance-typescript conformance-java
conformance-python: build python-env
	cd clients/python && SIDEKEEPER_PROGRAM=$(CURDIR)/bin/sidekeeper ../../.cache/python/bin/pytest --numprocesses=2 --dist=worksteal tests/test_conformance.py

conformance-typescript: build
	cd clients/typescript && npm ci --no-fund --no-audit --silent && npm run --silent build && \
		SIDEKEEPER_PROGRAM=$(CURDIR)/bin/sidekeeper node --test dist/test/conformance.test.js

conformance-java: build
	cd clients/java && SIDEKEEPER_PROGRAM=$(CURDIR)/bin/sidekeeper mvn --batch-mode --no-transfer-progress --quiet test -Dtest=ConformanceTest

.PHONY: kube-test
kube-test: ## Test the Helm chart, the injector, a pod whose sidecar is restarted and elections of controllers on a real API server of Kubernetes, which it builds once; then it takes four minutes
	go test -race -count=1 -v -tags kube -timeout 60m ./test/kube
	go -C tools/controllers test -count=1 -v -tags kube -timeout 3h -run TestNoWriteOfAnOldLeader .

.PHONY: go
go: ## Check and test the Go client; `make test` does so with all other packages
	$(GOLANGCI_CLIENT) run
	$(GOLANGCI_K8S) run
	go -C clients/go test -race ./...
	go -C clients/go/k8s test -race ./...
	go test -race ./test/goclient ./sidekeepertest

.PHONY: python
python: build ## Check, test and pack the Python client
	SIDEKEEPER_PROGRAM=$(CURDIR)/bin/sidekeeper clients/python/check

.PHONY: typescript
typescript: build ## Check, test and pack the TypeScript client
	SIDEKEEPER_PROGRAM=$(CURDIR)/bin/sidekeeper clients/typescript/check

.PHONY: java
java: build ## Check, test and pack the Java client
	SIDEKEEPER_PROGRAM=$(CURDIR)/bin/sidekeeper clients/java/check

.PHONY: skew
skew: build python-env ## Play clients of the newest release against the sidecar of now, and the other way around; it takes that commit, and five minutes
	@tools/need git
	SIDEKEEPER_PROGRAM=$(CURDIR)/bin/sidekeeper PYTHON=$(CURDIR)/.cache/python/bin/python tools/skew

.PHONY: stubs
stubs: build ## Make stubs for Ruby and C++ by protoc alone, and acquire a lock and take an item through them
	SIDEKEEPER_PROGRAM=$(CURDIR)/bin/sidekeeper clients/bare/check

.PHONY: one-lock
one-lock: build python-env ## Have a program with Curator and one with the Python client share a lock
	SIDEKEEPER_PROGRAM=$(CURDIR)/bin/sidekeeper PYTHON=$(CURDIR)/.cache/python/bin/python examples/onelock/check

.PHONY: check
check: check-proto check-generated check-modules check-code check-systems check-house check-language ## Check everything that is no test of behaviour

.PHONY: fix
fix: fix-proto generate fix-modules fix-code fix-language ## Repair what `make check` finds, where a program can

.PHONY: generate
generate: ## Write gen/ and docs/api/ anew from proto/
	@$(BUF) generate --clean
	@$(BUF) build -o - | go -C tools run ./reference ../docs/api

.PHONY: ensemble
ensemble: build ## Start a ZooKeeper ensemble of three, until Ctrl-C
	@bin/ensemble

.PHONY: image-check
image-check: build ## Build the image from the Dockerfile, without an engine or a registry, and run it; takes buildah and podman
	tools/image-check

.PHONY: release-check
release-check: ## Rehearse a release: build and sign all files, install each and take a lock; ANEW=1 compiles each package twice; takes rpm and GnuPG
	ANEW=$(ANEW) tools/release/check

.PHONY: compose-check
compose-check: ## Run docker-compose.yaml and stop its servers one by one; takes `docker compose` with an engine
	tools/compose-check

.PHONY: bench
bench: build ## Measure locks against direct clients of ZooKeeper; ARGS="-quick -run 'pairs.*'" for a part of it
	@go run ./test/bench $(ARGS)

.PHONY: bench-clients
bench-clients: build ## Measure what each client costs over bare stubs
	go test ./test/goclient -run '^$$' -bench Overhead -benchtime 5s
	cd clients/python && SIDEKEEPER_PROGRAM=$(CURDIR)/bin/sidekeeper PYTHONPATH=src ../../.cache/python/bin/python tests/overhead.py
	cd clients/typescript && npm ci --no-fund --no-audit --silent && npx tsc && SIDEKEEPER_PROGRAM=$(CURDIR)/bin/sidekeeper node dist/test/overhead.js
	cd clients/java && SIDEKEEPER_PROGRAM=$(CURDIR)/bin/sidekeeper mvn --batch-mode --quiet test -Dtest=OverheadBench -Dexcluded.tests=none

.PHONY: spec
spec: models traces-check ## Check the models in TLA+, of sessions, locks, sequences and configuration, that they refute each mistake, and traces of the code

# What the models alone decide, with traces that are made up: it changes only with test/spec and test/traces.
MODELS_ALONE = TheModelsHold|EveryMistakeIsMade|ThatBreakAPromiseAreRefused

.PHONY: models
models: ## Check the models by themselves
	go test -count=1 -v -tags spec -timeout 60m ./test/spec -run '$(MODELS_ALONE)'

.PHONY: traces-check
traces-check: python-env ## Hold what the code, sidecars on a real ensemble and sidecars for clients do against the models
	go test -count=1 -v -tags spec -timeout 30m ./test/spec -skip '$(MODELS_ALONE)' -python $(CURDIR)/.cache/python/bin/python

# What the tests of the Python client take.
.PHONY: python-env
python-env:
	@clients/python/environment

.PHONY: mutants
mutants: ## Run the tests against each mutant of which something has changed since it was caught, and note in .ci/passed which are caught now
	go test -count=1 -v -timeout 2h ./test/mutants -record -skip TestRoundsOfFaults

.PHONY: mutants-all
mutants-all: ## The same against all mutants, however they have fared; takes three quarters of an hour
	go test -count=1 -v -timeout 3h ./test/mutants -all -record

SCHEDULES ?= 60
.PHONY: traces
traces: python-env ## Hold 1,700 traces of 60 random schedules on each stage against the models, 5 rounds on real ensembles, and what sidecars do for each client; goes on where it was stopped. SCHEDULES=600 for more
	@tools/need node java
	@mkdir -p bin
	cd clients/typescript && npm ci --no-fund --no-audit --silent && npx tsc
	go test -count=1 -v -tags spec -timeout 6h ./test/spec -run 'TheModelsDo$$' -rounds 5 -schedules $(SCHEDULES) -report $(CURDIR)/bin/traces-report \
		-python $(CURDIR)/.cache/python/bin/python -clients Go,Python,TypeScript,Java

.PHONY: schedules
schedules: ## Play ten times as many random schedules on simulated servers as `make test` does; half an hour
	go test -count=1 -timeout 3h ./test/explore -night
	go test -count=1 -timeout 3h ./test/simulation -seeds 2000 -break-seeds 125 -member-seeds 60
	go test -race -count=1 -timeout 3h ./test/simulation -seeds 200 -break-seeds 13 -member-seeds 6

.PHONY: fuzz
fuzz: ## Fuzz every parser, decoder and request, a minute each; FUZZTIME=10s for less
	tools/fuzz

.PHONY: flaky
flaky: ## Run the tests of PKG=./service thirty times under load and list which fail; RUNS=10, LOAD=8 copies at once, ARGS="-run X"
	RUNS=$(RUNS) LOAD=$(LOAD) ARGS="$(ARGS)" tools/flaky $(PKG)

.PHONY: browser
browser: build ## Test the console in Chromium, with the rules of accessibility
	@tools/need node browser
	cd tools/pictures && npm ci --no-fund --no-audit --silent && go test -count=1 .

.PHONY: pictures
pictures: build ## Take the pictures of docs/ anew, of a real sidecar; it takes Chromium, and what `make python` prepares
	go -C tools/pictures build -o ../../bin/pictures .
	bin/pictures

.PHONY: site
site: ## Make a site of the documents, which can be searched, in bin/site; it takes Python and npm
	tools/site/build

.PHONY: conductor
conductor: build
	@tools/need python # for the second judge
	go build -o bin/chaos ./test/chaos
	go build -tags sleeper -o bin/sleeper ./cmd/sidekeeper

ROUNDS = 60

.PHONY: chaos-rounds
chaos-rounds: conductor ## Play rounds of faults on real ensembles, and nothing else: 60 take half an hour; ROUNDS=5 for fewer, ARGS="-nemesis N1" for some
	bin/chaos -rounds $(ROUNDS) -out bin/chaos-report $(ARGS)

# The callers of other languages than Go.
.PHONY: restart-callers
restart-callers: python-env
	@tools/need node java
	cd clients/typescript && npm ci --no-fund --no-audit --silent && npm run --silent build
	cd clients/java && mvn --batch-mode --no-transfer-progress --quiet package -DskipTests && mvn --batch-mode --no-transfer-progress --quiet dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory=$(CURDIR)/bin/callers
	cp clients/java/target/sidekeeper-*[0-9].jar bin/callers
	javac -Xlint:all,-processing,-path -Werror -proc:none -cp 'bin/callers/*' -d bin/callers test/chaos/callers/Caller.java

RESTARTS = 1000

.PHONY: chaos-restarts
chaos-restarts: conductor restart-callers ## Restart three sidecars a thousand times, by SIGKILL and SIGTERM, under 60 callers in four languages, and judge what they have lost; RESTARTS=60 for fewer
	bin/chaos -restarts $(RESTARTS) -rounds 1 -profile fast -out bin/chaos-restarts $(ARGS)

TICKS = 500

.PHONY: chaos-ticks
chaos-ticks: conductor ## Let 500 ticks of a crontab of 50 lines come due under kills, cuts and wrong clocks, and judge how often each began; TICKS=100 for fewer
	@tools/need faketime
	bin/chaos -ticks $(TICKS) -rounds 1 -profile fast -out bin/chaos-ticks $(ARGS)

ALONE = 3

.PHONY: chaos-alone
chaos-alone: conductor ## Play minutes of faults among members who share a set of 500 items, and among claims of two dozen locks, for which Curator waits, too; ALONE=1 for fewer rounds than three of each
	@tools/need java
	mkdir -p bin/curator && cp test/peers/testdata/curator/pom.xml bin/curator
	mvn --batch-mode --no-transfer-progress --quiet --file bin/curator dependency:copy-dependencies
	bin/chaos -alone shares -profile real -rounds $(ALONE) -out bin/chaos-shares $(ARGS)
	bin/chaos -alone claims -curator bin/curator/target/jars -profile real -rounds $(ALONE) -out bin/chaos-claims $(ARGS)

.PHONY: chaos
chaos: conductor ## Let faults loose on real ensembles for hours and judge what everybody has seen; ARGS="-rounds 5 -nemesis N1" for a part
	bin/chaos -rounds 250 -out bin/chaos-report $(ARGS)
	go test -race -count=1 -v -timeout 2h ./test/endtoend -rounds=20 -kills=500 -strict=500000 -relaxed=5000000 -members=200 -watchers=50 -keys=1000 -key-watchers=1000 -hostility=30s
	go test -count=1 -v -timeout 1h ./test/doors -night -figures
	go test -race -count=1 -timeout 1h ./test/doors -night
	go test -race -count=1 -v -timeout 2h ./test/peers -acquisitions=10500 -numbers=10000 -kills=10
	go test -race -count=1 -timeout 2h ./test/chaos/...

.PHONY: check-proto fix-proto
check-proto:
	$(BUF) lint
	$(BUF) format --diff --exit-code
	BUF="$(BUF)" tools/check-breaking

fix-proto:
	$(BUF) format --write

.PHONY: check-generated
check-generated:
	BUF="$(BUF)" tools/check-generated

.PHONY: check-modules fix-modules
check-modules:
	@for module in $(MODULES); do echo "go -C $$module mod tidy -diff"; go -C $$module mod tidy -diff; done

fix-modules:
	@for module in $(MODULES); do echo "go -C $$module mod tidy"; go -C $$module mod tidy; done

.PHONY: check-code fix-code
check-code:
	$(GOLANGCI) fmt --diff
	$(GOLANGCI) run
	$(GOLANGCI_CLIENT) run

fix-code:
	$(GOLANGCI) fmt
	$(GOLANGCI) run --fix
	$(GOLANGCI_CLIENT) run --fix
	$(GOLANGCI_K8S) run --fix

# The systems that the command and the Go client are built for beside Linux. What a system cannot do it says when it is asked to.
.PHONY: check-systems
check-systems:
	@for system in darwin/arm64 windows/amd64; do \
		echo "build for $$system"; \
		export GOOS=$${system%/*} GOARCH=$${system#*/} CGO_ENABLED=0; \
		go build -o /dev/null ./cmd/sidekeeper; \
		go -C clients/go build ./...; \
	done

.PHONY: check-house
check-house:
	go test ./test/house
	go -C tools test ./...

# The commit after which every subject has a scope and at most 72 characters.
SUBJECTS_SINCE := de9121eb57994e8ee602b0a5c7b27d328e250529

.PHONY: check-language fix-language
check-language: ## Check the words and the length of what people read, and the subjects of commits
	go -C tools run ./language check
	go -C tools run ./language subjects $(SUBJECTS_SINCE)

fix-language: ## Lower the ceilings of findings in each file to what is left
	go -C tools run ./language fix
