# One command per habit; CI calls the same ones (.ci/run).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
OUT ?= out
# A path, which type checkers and editors follow, in place of an import hook.
EDITABLE := --config-settings editable_mode=compat

.PHONY: demo kernels test verify fuzz lint bench docs notebooks ledgers lowest dist clean help

help:
	@echo "make demo   install into .venv and run the main job: Koh et al. 2017, tables and figures in $(OUT)/"
	@echo "make test   run the tests (about ten minutes on two cores, compilation included)"
	@echo "make kernels build the compiled code into the checkout (first part of demo and test; about a minute)"
	@echo "make verify thousands of random programs through both engines, many new examples of every property, and each kernel compared with Numba's"
	@echo "make fuzz   a minute of coverage-guided fuzzing of the trace readers"
	@echo "make lint   ruff and mypy --strict, for the examples of the documentation too"
	@echo "make bench  speed, as ratios measured side by side (about fifteen minutes)"
	@echo "make docs   build the documentation in $(OUT)/docs; warnings are errors"
	@echo "make notebooks  rewrite each lesson's .ipynb, run all in a kernel, check their answers"
	@echo "make ledgers  run every study and record its verdicts for the documentation (minutes)"
	@echo "make lowest  tests of scenarios, results, traces and studies with the lowest versions of dependencies"
	@echo "make dist   build a wheel with kernels for this platform, and a source distribution, in dist/ (minutes)"
	@echo "make clean  remove .venv and what the commands made"

# Bytecode comes on all cores, and without the tests of packages. Pip would compile all on one.
$(STAMP): setup.cfg pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --no-compile --quiet --disable-pip-version-check -c constraints.txt $(EDITABLE) -e ".[test,lint]"
	@$(BIN)/python -m compileall -q -j 0 -x '/tests?/' $(VENV)/lib || true
	@touch $@

# Without a linker, PyPI's ziglang is one. Without that either, Numba compiles at the first run.
kernels: $(STAMP)
	@command -v cc > /dev/null || $(BIN)/pip install --quiet --disable-pip-version-check ziglang || true
	@$(BIN)/python -m stripesim.sim.kernels || true

demo: $(STAMP) kernels
	@$(BIN)/python docs/demo.py
	@mkdir -p $(OUT)/koh2017
	@$(BIN)/stripesim run koh2017 --out $(OUT)/koh2017 --json - > $(OUT)/koh2017/run.json
	@$(BIN)/python docs/demo.py $(OUT)/koh2017

# Tests start many interpreters, which load bytecode that is on disk.
test: $(STAMP) kernels
	PYTHONDONTWRITEBYTECODE= $(BIN)/pytest -n auto --dist worksteal -q

verify: $(STAMP) kernels
	STRIPESIM_HYPOTHESIS=thorough STRIPESIM_ENGINE_SEEDS=5000 STRIPESIM_AUDIT_SEEDS=10000 $(BIN)/pytest -q tests/property \
	    tests/unit/test_prebuilt_kernels.py

fuzz: $(STAMP)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt $(EDITABLE) -e ".[fuzz]"
	$(BIN)/python fuzz/seeds.py $(OUT)/seeds
	$(BIN)/python fuzz/fuzz_traces.py -max_total_time=60 $(OUT)/seeds

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python tests/support/python_blocks.py $(OUT)/examples
	MYPYPATH=$(OUT)/examples $(BIN)/mypy --strict tests/examples/typed_api.py $(OUT)/examples/*.py
	MYPYPATH=docs $(BIN)/mypy docs/build.py docs/record.py docs/screenshots.py docs/conf.py docs/generate

bench: $(STAMP) kernels
	$(BIN)/python benchmarks/run.py

docs: $(STAMP)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt $(EDITABLE) -e ".[docs]"
	$(BIN)/python -m stripesim.sim.kernels
	$(BIN)/python docs/build.py $(OUT)

notebooks: $(STAMP)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt $(EDITABLE) -e ".[notebooks]"
	$(BIN)/python -m stripesim.notebooks.files
	$(BIN)/python -m stripesim.notebooks.files execute
	STRIPESIM_LESSON_SEEDS=all $(BIN)/pytest -q tests/examples/test_notebooks.py

ledgers: $(STAMP)
	$(BIN)/python docs/record.py

lowest:
	$(PYTHON) -m venv $(OUT)/lowest
	$(OUT)/lowest/bin/pip install --quiet --disable-pip-version-check -c constraints-lowest.txt . pytest hypothesis jsonschema
	PYTHONPATH=. NUMBA_CACHE_DIR=$(OUT)/lowest/numba $(OUT)/lowest/bin/python -m pytest -q -p no:cacheprovider \
	    tests/unit/test_scenario_loader.py tests/unit/test_results_files.py tests/unit/test_sweep_store.py tests/unit/test_sweep_stats.py \
	    tests/unit/test_figures.py tests/unit/test_trace_formats.py tests/unit/test_studies.py tests/unit/test_cli.py \
	    tests/unit/test_jit_cache.py

dist: $(STAMP)
	$(BIN)/pip wheel --quiet --disable-pip-version-check --no-deps -w dist .
	$(BIN)/python -c "import build_backend; build_backend.build_sdist('dist')" > /dev/null

clean:
	rm -rf $(VENV) $(OUT) models/jit/built/kernels.* build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
