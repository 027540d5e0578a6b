# What people type. `make` alone checks and tests.
.PHONY: all generate check test bench demo fuzz

FUZZTIME ?= 30s

all: check test

generate: ## protobuf code from proto/
	tools/generate

check: ## formatting, vet, staticcheck, generated code, modules, wording
	tools/check

test:
	go test -race -shuffle=on -timeout=5m ./...

bench:
	go test -run '^$$' -bench . -benchmem ./...

demo: ## three nodes on loopback, crashed, frozen and cut off
	go run ./cmd/raftlease demo --once

fuzz: ## every fuzz target there is, FUZZTIME each
	tools/fuzz $(FUZZTIME)
