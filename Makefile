# Binaries go to .bin/, servers of the tests keep their files under .run/, the
# embedded mode keeps its data under .stockade/: all three are git-ignored.

.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

.PHONY: help
help: ## Show this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /\1\t/' | expand -t 10

.PHONY: build
build: ## Build the binaries into .bin/
	@CGO_ENABLED=0 go build -o .bin/ ./cmd/...

.PHONY: run
run: build ## Start the embedded mode with a demo SKU; Ctrl-C stops it
	@.bin/stockade dev

.PHONY: demo
demo: build ## Let 10 000 buyers go for 500 units and check the books
	@.bin/stockade demo

.PHONY: test
test: ## Run everything with the race detector on real servers, then lint
	@scripts/test.sh

.PHONY: unit
unit: ## Run the tests that need no server and no C compiler
	@CGO_ENABLED=0 go test ./...

.PHONY: explore
explore: ## Check 2000 new random histories against the model
	@CGO_ENABLED=0 go test -count=1 -tags services -run TestModelEmbedded ./biz/service -rapid.seed=$$(date +%s)

.PHONY: drill
drill: ## Break real processes during sales, each drill as long as it wants
	@CGO_ENABLED=1 STOCKADE_DRILL=long go test -count=1 -race -tags services -timeout 2h -v ./cmd/stockade/drill

.PHONY: soak
soak: ## Break one endless sale at random for MINUTES (default 10); SEED repeats one
	@CGO_ENABLED=1 STOCKADE_SOAK_MINUTES=$(MINUTES) STOCKADE_SOAK_SEED=$(SEED) \
		go test -count=1 -race -tags services,soak -timeout 0 -v -run '^TestSoak$$' ./cmd/stockade/drill

.PHONY: lint
lint: ## Check formatting, vet and staticcheck
	@scripts/lint.sh

.PHONY: fuzz
fuzz: ## Run each fuzz target for FUZZTIME (default 10s)
	@scripts/fuzz.sh

.PHONY: clean
clean: ## Stop the test servers, remove binaries and the embedded mode's data
	@scripts/services.sh down
	@rm -rf .bin .stockade
