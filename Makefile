# Each target sets up what it needs; python3 and make are enough to start.
#   make train CONFIG=configs/gat_cora.py ARGS="--config.seeds=10"
#   make test ARGS="-x tests/test_graph.py"
PYTHON ?= python3
VENV ?= .venv
CONFIG ?= configs/gat_cora.py

# Modules, not the scripts in bin/: those break when the checkout moves, and where its path is long.
python = $(VENV)/bin/python

.PHONY: setup train test lint lock clean
# Two pips must never work in one environment at once, whatever -j says.
.NOTPARALLEL:

setup: $(VENV)/.ready

train: $(VENV)/.ready
	$(python) train.py --config=$(CONFIG) $(ARGS)

# Compiling is most of the tests' time, and most of it is one small program after another:
# JAX keeps only what took a second, so ask it to keep everything.
test: export JAX_COMPILATION_CACHE_DIR ?= $(HOME)/.cache/lineage-jax
test: export JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS = 0
test: export JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES = -1
test: $(VENV)/.ready-test
	$(python) -m pytest -n 2 --dist loadfile $(ARGS)

# mypy reads from pyproject.toml which modules are annotated.
lint: $(VENV)/.ready-test
	$(python) -m ruff check .
	$(python) -m ruff format --check .
	$(python) -m mypy

# Keeps the pins that still fit; `make lock ARGS=--upgrade` takes the newest. The one target that needs uv.
lock:
	uv pip compile --quiet setup.cfg --extra test --universal --python-version 3.11 --no-annotate \
	  --custom-compile-command "make lock" --output-file constraints.txt $(ARGS)

clean:
	rm -rf $(VENV) *.egg-info .mypy_cache .ruff_cache .pytest_cache
	find . -name __pycache__ -prune -exec rm -rf {} +

# The stamps are written after pip has succeeded, so an interrupted install is taken up again.
pip = $(python) -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
packaging = setup.cfg pyproject.toml constraints.txt

$(VENV)/.ready: $(packaging) | $(VENV)/bin/pip
	$(pip) --editable .
	@touch $@

$(VENV)/.ready-test: $(packaging) | $(VENV)/bin/pip
	$(pip) --editable ".[test]"
	@touch $(VENV)/.ready $@

$(VENV)/bin/pip:
	@$(PYTHON) -c "$$check_python"
	@echo "Setting up $(VENV), once: about a minute, 300 MB to download, 1.1 GB on disk."
	@$(PYTHON) -m venv $(VENV)

define check_python
import sys
version = "%d.%d" % sys.version_info[:2]
if version not in ("3.11", "3.12", "3.13"):
    sys.exit("Lineage runs on Python 3.11 to 3.13, not %s. Say: make PYTHON=python3.11" % version)
try:
    import ensurepip, venv
except ImportError:
    sys.exit("Python %s came without venv. On Debian: apt install python3-venv" % version)
endef
export check_python
