# standbyd: build, check and try it. Only Go and make are needed, except for
# `race`, which needs a C compiler.

GO          ?= go
BIN         := bin
CONFIG      ?= config.example.toml
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2

# -buildvcs=false: a clone that git does not trust, or a machine without git, builds as well.
export GOFLAGS := -buildvcs=false $(filter-out -buildvcs=%,$(shell $(GO) env GOFLAGS))

# program:folder
PROGRAMS := standbyd:cmd/standbyd \
            standbyd-snapshot:plugins/snapshot \
            standbyd-gc:plugins/gc \
            kv:examples/kv \
            counter:examples/counter \
            hello-plugin:examples/plugin \
            embed:examples/embed

# What must compile where: workers link coord on every platform, the rest is for Unix.
CROSS_COORD := linux darwin freebsd windows
CROSS_ALL   := linux darwin freebsd
CROSS_ARCH  := amd64 arm64

.PHONY: all help build test conformance race lint cross soak soak-files soak-linear soak-dying soak-hooks soak-kills soak-alarms soak-e2e fuzz bench bench-failover bench-go bench-scale run clean model

all: build

help: ## this list
	@grep -hE '^[a-z][a-z0-9-]*:.* ## ' $(firstword $(MAKEFILE_LIST)) | sed -E 's/^([a-z0-9-]+):.* ## /\1|/' | while IFS='|' read -r name what; do \
	  printf '%-16s %s\n' "$$name" "$$what"; done

build: ## every program, into ./bin
	@mkdir -p $(BIN)
	@for p in $(PROGRAMS); do \
	  name=$${p%%:*}; dir=$${p#*:}; \
	  ls $$dir/*.go >/dev/null 2>&1 || continue; \
	  CGO_ENABLED=0 $(GO) build -trimpath -o $(BIN)/$$name ./$$dir || exit 1; \
	done

test: ## every test; a few minutes
	CGO_ENABLED=0 $(GO) test -p $(SIDE_BY_SIDE) -timeout 10m $(LONGEST) ./...
	CGO_ENABLED=0 $(GO) test -timeout 5m -tags interleave -run Interleave ./coord/election/...

conformance: ## what users of process supervisors complain of, one test each, in the long form
	CONFORMANCE=1 CGO_ENABLED=0 $(GO) test -count 1 -timeout 1h -v ./test/conformance

# Packages that are tested at the same time: most of their time they wait for processes.
SIDE_BY_SIDE ?= 3

# What takes longest begins first, and the short ones fill the gaps.
LONGEST := ./supervisor ./test/e2e ./test/conformance ./plugins/host

# Tests of programs that are built without it: there is nothing to be seen by it.
PLAIN := -e /test/e2e -e /test/conformance -e /bench/

# Each process would wait a second before it exits, for others to race with it.
race: ## the tests under the race detector; needs a C compiler
	@command -v $${CC:-gcc} >/dev/null 2>&1 || { echo "make race: the race detector needs a C compiler; install gcc, or set CC" >&2; exit 1; }
	GORACE=atexit_sleep_ms=0 CGO_ENABLED=1 $(GO) test -race -p $(SIDE_BY_SIDE) -timeout 15m $$($(GO) list $(LONGEST) ./... | grep -v $(PLAIN))

lint: ## gofmt, vet, staticcheck
	@unformatted=$$(gofmt -l .); \
	  if [ -n "$$unformatted" ]; then echo "make lint: not formatted by gofmt:" >&2; echo "$$unformatted" >&2; exit 1; fi
	CGO_ENABLED=0 $(GO) vet ./...
	CGO_ENABLED=0 $(GO) run $(STATICCHECK) ./...

cross: ## compile for every platform
	@set -e; for os in $(CROSS_COORD); do \
	  what=./coord/...; \
	  for full in $(CROSS_ALL); do if [ $$os = $$full ]; then what=./...; fi; done; \
	  for arch in $(CROSS_ARCH); do \
	    echo "$(GO) build $$what  # $$os/$$arch"; \
	    CGO_ENABLED=0 GOOS=$$os GOARCH=$$arch $(GO) build $$what; \
	  done; \
	  echo "$(GO) vet $$what  # $$os/amd64, with tests"; \
	  CGO_ENABLED=0 GOOS=$$os GOARCH=amd64 $(GO) vet $$what; \
	done

# The heavy tests, for longer; docs/testing.md says what each shows, and how long it takes.
SOAK ?= 50
SOAK_FOR ?= 10m
E2E_SOAK := CGO_ENABLED=0 $(GO) test -count 1 -timeout 3h -v
soak: soak-files soak-linear soak-dying soak-hooks soak-kills soak-alarms soak-e2e ## all of the soaks below, one after the other; an hour or more

soak-files: ## racing claimants and killed writers of file leases, SOAK (50) times as many rounds
	FILELEASE_LONG=$(SOAK) CGO_ENABLED=0 $(GO) test -timeout 2h -run 'Racing|Reclaimers|KilledAtEveryStep' -v ./coord/filelease

soak-linear: ## linearizability of the lease under processes that are killed and stopped
	SOAK=1 CGO_ENABLED=0 $(GO) test -timeout 2h -run 'Linearizable' -v ./test/linear

soak-dying: ## nobody alive is taken for dying: threads, execve, debuggers, cores; 4,000 rounds, some 5 minutes
	SOAK=1 CGO_ENABLED=0 $(GO) test -timeout 1h -run 'NobodyAlive' -v ./internal/proc

soak-hooks: ## 1,000 killed leaders under hooks that are slower than the changes, fail and hang
	SOAK=1 CGO_ENABLED=0 $(GO) test -timeout 2h -run 'ForcedChanges' -v ./supervisor

soak-kills: ## 1,000 kills in a row of a leader under a writing client; counts what they leave behind; about 10 minutes when idle
	SOAK=1 $(E2E_SOAK) -run 'TestManyKills' ./test/e2e

soak-alarms: ## nobody healthy is taken for hung: busy processors, a leader that allocates; SOAK_FOR (10m) each
	SOAK=$(SOAK_FOR) $(E2E_SOAK) -run 'TestNoFalseAlarm' ./test/e2e

soak-e2e: ## the other tests of the whole system, ten times as many rounds
	SOAK=1 $(E2E_SOAK) -skip 'TestManyKills|TestNoFalseAlarm' ./test/e2e

# Each fuzz target for FUZZTIME, one after the other; `test` runs their seeds.
FUZZTIME ?= 60s
fuzz: ## each fuzz target for FUZZTIME (60s)
	@grep -rEo --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' . | sed 's|^\./||; s|/[^/]*:func | |' | sort | while read -r dir name; do \
	  echo "$$name in $$dir, for $(FUZZTIME)"; \
	  CGO_ENABLED=0 $(GO) test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x ./$$dir </dev/null || exit 1; \
	done

# The primitives beside sync.Mutex, flock and others; BENCH="-o docs/benchmarks.md" writes the page.
BENCH ?=
bench: ## the primitives beside sync.Mutex, flock and others; BENCH="-o docs/benchmarks.md" writes its part of the page
	@mkdir -p $(BIN)
	CGO_ENABLED=0 $(GO) build -trimpath -o $(BIN)/bench ./bench
	@./$(BIN)/bench $(BENCH)

# A hundred roles of ten workers: start, idling, status, one failover among all, stop.
bench-scale: build ## what a hundred roles of ten workers cost
	CGO_ENABLED=0 $(GO) build -trimpath -o $(BIN)/scale ./bench/scale
	CGO_ENABLED=0 $(GO) build -trimpath -o $(BIN)/scale-worker ./bench/scale/worker
	@./$(BIN)/scale -standbyd $(BIN)/standbyd -worker $(BIN)/scale-worker $(SCALE)

# How long a role is without a leader, beside locks and other supervisors; about 10 minutes, FULL=1 three quarters of an hour.
# BENCH="-o docs/benchmarks.md" writes the page's part; `./bin/bench-failover -h` lists what BENCH can say besides.
bench-failover: ## how long nobody leads, beside locks and other supervisors; about 10 minutes; FULL=1 for everything
	@mkdir -p $(BIN)
	CGO_ENABLED=0 $(GO) build -trimpath -o $(BIN)/standbyd ./cmd/standbyd
	CGO_ENABLED=0 $(GO) build -trimpath -o $(BIN)/bench-failover ./bench/failover
	@./$(BIN)/bench-failover -standbyd $(BIN)/standbyd $(BENCH)

bench-go: ## the Go benchmarks of the packages
	CGO_ENABLED=0 $(GO) test -run '^$$' -bench . -benchmem ./...

run: ## build, and start the demo
	@echo "building standbyd and its examples into ./$(BIN) (the first time takes a minute or two) ..."
	@$(MAKE) --no-print-directory build
	@exec ./$(BIN)/standbyd run -c $(CONFIG) --take-terminal

clean: ## remove what was built and what the demo wrote
	@if [ -x $(BIN)/standbyd ] && ./$(BIN)/standbyd -c $(CONFIG) status >/dev/null 2>&1; then \
	  echo "make clean: the demo is running; stop it first: ./$(BIN)/standbyd -c $(CONFIG) shutdown" >&2; exit 1; fi
	rm -rf $(BIN) data

model: ## check the protocol with a model checker (apt-get install spin)
	@coord/election/model/check.sh
