# Everything from a fresh clone with python3 >= 3.11, git and a package registry; nothing is written outside it.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
PYTEST_ARGS ?=
PROVE_ARGS ?=
TIMES ?= 20
PEERS ?= all
ONLY ?=
SCALE ?= 1
ROUNDS ?= 11
URL ?=
WEB ?= 0
RUNS ?= 50
FAULTS ?= 0
SEED ?= 1
# One more than there are processors: many tests wait for programs most of the time.
WORKERS = $(shell $(PY) -c 'import os; print(1 + (os.cpu_count() or 1))')
# Memory in the place of a disk, if it has two gigabytes and lets programs run: the quick tests wait for fsync, the more the busier the disk is.
MEMORY = $(shell df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 && $$4 > 2000000 {print $$6}' | grep -vxF "$$(awk '/noexec/ {print $$2}' /proc/mounts 2>/dev/null)")
VENV := .venv
PY := $(VENV)/bin/python
# Named after the clone's path: in a copied or moved clone the .venv still points at the old place and is made anew.
STAMP := $(VENV)/installed-$(shell printf '%s' "$(CURDIR)" | cksum | cut -d' ' -f1)
CODE := src tests $(wildcard benchmarks proof release examples/library)
# The real agent CLIs (about 800 MB) that tests/clients runs against a scripted model; `make test CLIENTS=0` leaves them out.
export CLIENTS ?= 1
# `make test STORE=postgres` runs the suite with runs kept in a real PostgreSQL server of each test process's own.
export STORE ?=
# Programs that a target needs; the apt package has the same name, but for those that PACKAGES lists. Some are Linux's alone.
PROGRAMS := git jq tmux watch gh git-lfs openssl chromium ruby $(if $(filter Linux,$(shell uname)),bwrap podman runc dunst Xvfb dbus-run-session notify-send initdb ip)
PACKAGES := bwrap=bubblewrap watch=procps Xvfb=xvfb dbus-run-session=dbus-daemon notify-send=libnotify-bin initdb=postgresql ip=iproute2

# Debian keeps the programs of a PostgreSQL server off the PATH.
space := $(subst ,, )
POSTGRES_PATH := $(subst $(space),:,$(wildcard /usr/lib/postgresql/*/bin))

# A collector that somebody else wrote. Not a dependency: its wheels are for a few machines alone.
COLLECTOR := rotel==0.0.1a15

.PHONY: help setup system-packages clients collector check quick test prove soak lint format docs pictures bench cluster demo formula clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

check: setup ## check style, types, layers, and run the quick tests meanwhile: what to run before each commit
	@$(MAKE) --no-print-directory --jobs=2 lint quick

quick: setup ## run the quick tests only
	TMPDIR=$${TMPDIR:-$(MEMORY)} $(PY) -m pytest -q -n $(WORKERS) --dist loadgroup tests/unit tests/scenarios tests/test_tidy.py tests/test_imports.py $(PYTEST_ARGS)

test: setup system-packages clients collector lint docs ## check style, types, layers, then run the whole test suite
	$(PY) -m pytest -n $(WORKERS) --dist loadgroup --durations=10 $(PYTEST_ARGS)

prove: setup system-packages ## break it in every known way, and print one table: make prove PROVE_ARGS='--scale 0.1'
	$(PY) -m proof $(PROVE_ARGS)

soak: setup ## play many more seeds of the simulations: make soak TIMES=20
	SEEDS_TIMES=$(TIMES) $(PY) -m pytest -n $(WORKERS) tests/simulation -k 'whatever' $(PYTEST_ARGS)

lint: setup ## check style, types and layers only
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy $(CODE)
	$(VENV)/bin/lint-imports

format: setup ## rewrite the code in the house format
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

docs: setup ## build the documentation as a site, strictly, into build/docs
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --strict
	@echo "Open build/docs/index.html"

pictures: PROGRAMS := git tmux chromium
pictures: setup system-packages ## make the pictures of the live view and of the web page anew, in a real terminal and a real browser
	$(PY) -m tests.terminal.pictures
	$(PY) -m tests.web.pictures

bench: PROGRAMS := git strace perl initdb
bench: setup system-packages ## measure beside other engines, into docs/performance.md: make bench PEERS=none ONLY=steps,growth
	$(PY) -m benchmarks --peers '$(PEERS)' --only '$(ONLY)' --scale '$(SCALE)' --rounds '$(ROUNDS)'

cluster: PROGRAMS := git bwrap ip initdb
cluster: setup system-packages ## watch four workers and a database survive kills, freezes and cuts: make cluster RUNS=50, or FAULTS=100 SEED=7
	$(PY) -m tests.cluster.show --runs '$(RUNS)' --faults '$(FAULTS)' --seed '$(SEED)'

demo: PROGRAMS := git
demo: setup system-packages ## watch a workflow loop back, be killed, and go on; make demo WEB=1 shows it on a page
	@PATH="$(CURDIR)/$(VENV)/bin:$$PATH" WEB="$(WEB)" bash examples/demo/run.sh

formula: setup ## make the source distribution and a Homebrew formula for it in dist: make formula URL=https://…/orc_agents-0.1.0.tar.gz
	@rm -rf dist && $(PY) -m hatchling build --target sdist --directory dist
	@sdist=$$(ls dist/*.tar.gz); url='$(URL)'; $(PY) -m release.formula "$$sdist" "$${url:-file://$(CURDIR)/$$sdist}" > dist/orc-agents.rb
	@echo "dist/orc-agents.rb"

setup: $(STAMP) ## make .venv and install the package with its tools

$(STAMP): pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) was not found: install Python 3.11 or newer, or say make PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "$$($(PYTHON) --version) is too old: 3.11 or newer is needed; say make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "$(PYTHON) has no venv module: install it (Debian, Ubuntu: apt-get install python3-venv)" >&2; exit 1; }
	@if ! $(PY) -m pip --version >/dev/null 2>&1 || { ls $(VENV)/installed-* >/dev/null 2>&1 && [ ! -e $@ ]; }; then echo "Making $(VENV) ..."; $(PYTHON) -m venv --clear $(VENV); fi
	@echo "Installing agent-orchestrator and its tools into $(VENV) ..."
	@$(PY) -m pip install --quiet --disable-pip-version-check --editable '.[dev]' || { echo "pip could not install the packages (its own words are above): is a Python package registry within reach?" >&2; exit 1; }
	@touch $@

system-packages:
	@PATH="$$PATH:$(POSTGRES_PATH)"; missing=""; for program in $(PROGRAMS); do command -v "$$program" >/dev/null || { package="$$program"; \
	for pair in $(PACKAGES); do [ "$${pair%%=*}" = "$$program" ] && package="$${pair#*=}"; done; missing="$$missing $$package"; }; done; \
	[ -n "$$missing" ] || exit 0; \
	echo "Missing:$$missing; trying apt-get ..."; \
	as_root=""; [ "$$(id -u)" = 0 ] || as_root="sudo -n"; \
	install() { DEBIAN_FRONTEND=noninteractive $$as_root apt-get install -y -qq $$missing >/dev/null; }; \
	command -v apt-get >/dev/null && { install 2>/dev/null || { $$as_root apt-get update -qq && install; }; } || \
	{ echo "Could not install$$missing: please install it with your package manager (for example: brew install$$missing)." >&2; exit 1; }

# The npm packages of tests/$(1)/package.json in .cache/$(1), anew when the list changed.
define install_packages
if ! command -v npm >/dev/null; then echo "npm was not found: the tests with $(2) are skipped."; \
elif ! cmp -s tests/$(1)/package.json .cache/$(1)/installed.json; then \
	echo "Installing $(2) into .cache/$(1) ..."; \
	rm -rf .cache/$(1); mkdir -p .cache/$(1); cp tests/$(1)/package.json .cache/$(1); \
	npm install --prefix .cache/$(1) --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null || \
	{ echo "npm could not install them (its own words are above): is a package registry within reach? make test CLIENTS=0 leaves them out." >&2; exit 1; }; \
	cp tests/$(1)/package.json .cache/$(1)/installed.json; fi
endef

clients: ## install the real agent CLIs, and what else of npm the tests use, inside the project
	@if [ "$(CLIENTS)" = 0 ]; then echo "The real clients are left out (CLIENTS=0)."; else \
	$(call install_packages,clients,the real clients); $(call install_packages,node,editor and page checkers); fi

collector: setup ## install a collector of OpenTelemetry, which not every machine can have: a test sends to it
	@$(PY) -c 'import rotel' 2>/dev/null || $(PY) -m pip install --quiet --disable-pip-version-check --only-binary :all: $(COLLECTOR) 2>/dev/null || \
	echo "$(COLLECTOR) is not made for this machine: the test with it is skipped."

clean: ## remove .venv, caches and build results
	rm -rf $(VENV) .cache build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
