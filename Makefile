# Each target sets up what it needs; python3 and make are enough to start.
#   make train CONFIG=configs/gat_cora.py ARGS="--config.seeds=10"
#   make test ARGS="-x tests/test_graph.py"
PYTHON ?= python3
VENV ?= .venv
CONFIG ?= configs/gat_cora.py

# Modules, not the scripts in bin/: those break when the checkout moves, and where its path is long.
python = $(VENV)/bin/python

.PHONY: setup train test lint bench gallery claims lock clean
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

# An hour and a half on two cores, during which nothing else should run. The peers have an
# environment of their own.
bench: $(VENV)/.ready .venv-peers/.ready
	for name in gat_cora gcn_cora seeds_cora sweep; do $(python) -m benchmarks.$$name || exit 1; done

.venv-peers/.ready: benchmarks/requirements.txt
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	@touch $@

# The README's pictures. A run that is not there is trained, two minutes on two cores.
gallery: $(patsubst %,results/%/default/summary.json,gat_cora gcn_cora mlp_cora) | $(VENV)/.ready
	$(python) -m results.plot $(dir $<) --output=results/gallery --format=png
	$(python) -m results.plot $(dir $^) --output=results/gallery --format=png

results/%/default/summary.json: | $(VENV)/.ready
	$(python) train.py --config=configs/$*.py

# Claims, from the runs that are there; those that are not are trained, minutes to hours.
claims: $(VENV)/.ready
	for name in attention_on_citations; do $(python) -m claims.$$name $(ARGS) || exit 1; done

# Keeps the pins that still fit; `make lock ARGS=--upgrade` takes the newest. The one target that needs uv.
lock:
	uv pip compile --quiet setup.cfg --extra test --extra molecules --extra sweep --extra slurm --universal --python-version 3.11 --no-annotate \
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
