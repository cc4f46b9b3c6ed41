.DEFAULT_GOAL := help
.PHONY: help build test race lint vet snapshot ci bench rivals microbench compare crash soak fuzz engine man site clean

FUZZTIME ?= 10s
BENCHFLAGS ?=
RIVALSFLAGS ?=
BENCHES = ./backoff ./task ./internal/expression ./state/sqlite ./cmdexec/stdio ./plot ./cli
COUNT ?= 10
BASE ?= main
KILLS ?= 10000

help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s  %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

build: ## build a release binary, ./retry (needs a C compiler)
	bash .ci/release retry

test: ## run all tests
	go test ./...

race: ## run all tests with the race detector, in a random order
	GORACE=atexit_sleep_ms=0 go test -race -shuffle=on ./...

lint: ## run golangci-lint from the PATH (make ci brings its own)
	golangci-lint run ./...

vet: ## check formatting, and vet for this system, darwin and windows
	@test -z "$$(gofmt -l . | tee /dev/stderr)"
	go vet ./...
	GOOS=darwin CGO_ENABLED=0 go vet ./...
	GOOS=windows CGO_ENABLED=0 go vet ./...

snapshot: ## make all that a release consists of from the last commit, in dist/; `bash .ci/package` tests it, too
	bash .ci/package build

ci: ## run everything a change has to pass
	bash .ci/run

bench: ## time whole processes, side by side (BENCHFLAGS='-runs 50')
	go run ./test/bench $(BENCHFLAGS)

rivals: ## put the work of the service on asynq and River, too (RIVALSFLAGS='-before BUILD'); needs their servers
	@tmp=$$(mktemp -d) && trap 'rm -rf "$$tmp"' EXIT && bash .ci/release "$$tmp/retry" && \
		go -C test/bench/rivals build -mod=mod -o "$$tmp/rivals" . && "$$tmp/rivals" -retry "$$tmp/retry" $(RIVALSFLAGS)

microbench: ## run the Go benchmarks COUNT times (10) into microbench.out
	go test -run '^$$' -bench . -benchmem -count $(COUNT) $(BENCHES) | tee microbench.out

compare: ## run them COUNT times here and at BASE (main) in turn; benchstat says what changed
	bash .ci/compare $(BASE) $(COUNT)

crash: ## kill retry KILLS times (10000) and check that nothing is lost or run twice
	go test ./test/crash -v -count=1 -run '^TestKills$$' -timeout $$((120 + $(KILLS) / 4))s -args -kills $(KILLS)

soak: ## have two workers carry 100,000 tasks in ten minutes, and kill one every 20 s
	go test ./test/soak -v -count=1 -run '^TestSoak$$' -timeout 20m -args -tasks 100000 -time 10m -kill 20s

fuzz: ## run every fuzz target for FUZZTIME (10s)
	@set -e; for pkg in $$(go list ./...); do \
		list=$$(go test -list '^Fuzz' $$pkg); \
		for target in $$(printf '%s\n' "$$list" | grep '^Fuzz' || true); do \
			echo "$$pkg $$target"; \
			go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$pkg; \
		done; \
	done

engine: ## compile the engine of the page of retry plot --html, for a release
	GOOS=wasip1 GOARCH=wasm CGO_ENABLED=0 GOFLAGS= GOWASM= go build -buildmode=c-shared -trimpath -buildvcs=false \
		-ldflags='-s -w' -o plot/page/engine.wasm ./plot/page/engine
	gzip -9nf plot/page/engine.wasm

man: ## write the man pages and docs/reference.md anew, from the help texts and docs
	go test ./packaging/man -count=1 -run '^TestPagesAreNotStale$$' -args -update

site: ## build the site of docs/ in .bin/site
	bash docs/site/build

clean: ## remove what make built
	rm -rf retry dist .bin/packaging
