# Works with GNU make 3.81 and a POSIX shell; `make demo` and `make test` need nothing else but
# Python >= 3.11 and PyPI.

BIN = .venv/bin
PY = $(BIN)/python
# One worker more than there are cores: many tests wait for processes, not for a core.
WORKERS = $(shell $(PY) -c 'import os; print(min(8, (os.cpu_count() or 1) + 1))')

.PHONY: help setup demo test test-kubernetes test-peers test-tools check format lock generate bench clean

help:
	@echo "make demo      see gang scheduling happen on a cluster of its own (about a minute)"
	@echo "make test      run every test that needs no real Kubernetes"
	@echo "make prove     the engine's properties on fifty times as many random clusters"
	@echo "make test-kubernetes  the cluster tests and more on a real control plane, built with Go if need be"
	@echo "make test-peers  Volcano's and kubeflow's operators beside Posse, built with Go first"
	@echo "make test-tools  other people's clients for the tests: kubectl, helm, the Python clients"
	@echo "make setup     .venv with .venv/bin/posse and .venv/bin/arena"
	@echo "make check     format, lint, types, layers, drift of generated files"
	@echo "make bench     measure the engine, the scheduler's reading and the embedded cluster"
	@echo "make bench-peers  the same work for Posse, native gangs and Volcano on a real API server"
	@echo "make bench-preempt  a gang of 500 that preempts 500 running pods, and Volcano's gangpreempt"
	@echo "make bench-restart  a scheduler's start on 5,000 nodes and 50,000 pods, until it decides"
	@echo "make soak      kill services at random under load: make soak SECONDS=600 SEED=1"
	@echo "make generate  rewrite the generated files (deploy, docs/annotations.md, docs/cli.md)"
	@echo "make lock      resolve the pinned requirements again (needs uv)"
	@echo "make clean     remove .venv and caches"

setup: .venv/ready

.venv/ready: pyproject.toml requirements/dev.txt tools/make-environment tools/find-python
	@tools/make-environment

demo: setup
	@$(BIN)/posse demo

test: setup
	$(PY) -m pytest -q -n $(WORKERS) --dist worksteal

# The same properties as in `make test`, on more random examples: make prove TIMES=500 WHICH=walks
TIMES = 50
.PHONY: prove
prove: setup
	POSSE_PROVE_TIMES=$(TIMES) $(PY) -m pytest -q -n $(WORKERS) --dist worksteal tests/properties \
		$(if $(WHICH),-k $(WHICH))

# On a control plane without nodes that KUBECONFIG names, or on one of the programs in
# KUBEBUILDER_ASSETS, or on programs built once and kept in the user's cache.
test-kubernetes: setup
	@$(PY) -m tests.kubernetes.building
	$(PY) -m pytest -q tests/kubernetes

# Builds other people's operators, in some minutes and once: without them `make test-kubernetes`
# leaves the tests out that meet them, and says so.
test-peers: setup
	@$(PY) -m tests.kubernetes.building
	@$(PY) -m tests.kubernetes.peers.building training-operator mpi-operator vc-controller-manager
	POSSE_PEERS=1 $(PY) -m pytest -q tests/kubernetes/test_kubernetes_peers.py \
		tests/kubernetes/test_kubernetes_handover.py

# kubectl of Debian and of today, helm, and the Python clients: where tests do not find them, they
# say so and skip. Needs the network; Go for helm and today's kubectl, apt for Debian's.
test-tools: setup
	$(PY) -m tests.cluster.tools

check: setup
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(PY) -m posse.objects.crds --check
	$(PY) -m posse.objects.keys --check
	$(PY) -m posse.scheduler.choices --check
	$(PY) -m posse.client.installing --check
	$(PY) -m posse.cli.reference --check

format: setup
	$(BIN)/ruff format --quiet .
	$(BIN)/ruff check --quiet --fix .

generate: setup
	$(PY) -m posse.objects.crds
	$(PY) -m posse.objects.keys
	$(PY) -m posse.scheduler.choices
	$(PY) -m posse.client.installing
	$(PY) -m posse.cli.reference

bench: setup
	$(PY) -m bench.engine
	$(PY) -m bench.reading
	$(PY) -m bench.cluster

# On a real API server, with kube-scheduler and Volcano's scheduler built where they are not yet.
# make bench-peers PEERS="--gangs 200x20 --rounds 5"
.PHONY: bench-peers bench-preempt bench-restart
bench-peers: setup
	$(PY) -m bench.peers $(PEERS)

bench-preempt: setup
	$(PY) -m bench.peers.preempting $(PREEMPT)

bench-restart: setup
	$(PY) -m bench.peers.restart $(RESTART)

# SEED repeats the choices of a run that failed; without it, every run is another. First with
# gangs on simulated nodes, then with pods that are processes of this machine.
SECONDS = 600
.PHONY: soak
soak: setup
	$(PY) -m bench.soak --seconds $(SECONDS) $(if $(SEED),--seed $(SEED))
	$(PY) -m bench.soak --seconds $(SECONDS) $(if $(SEED),--seed $(SEED)) --machine

# No index lines and no host names in the lock: it installs from whatever registry pip is set to.
LOCK = uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-header --no-annotate pyproject.toml
lock:
	$(LOCK) -o requirements/runtime.txt
	$(LOCK) --extra dev -c requirements/runtime.txt -o requirements/dev.txt
	$(LOCK) --extra clients -c requirements/dev.txt -o requirements/clients.txt

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
