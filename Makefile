# make run    sets everything up, then opens the window on the demo checkpoint
# make test   sets everything up, then runs every check; ends with pytest's closing line
# make test-light  the tests that need no torch, without installing it, as make lint and make docs do
# make sweep  the same with all that random tests and sweeps over the corpus can try; takes a quarter of an hour
# make hostile    opens every hostile file, also the largest, and prints what each came to
# make fuzz       throws bytes at the readers for FUZZ_MINUTES (10)
# make dist       builds the wheel and the source archive, a bundle that needs no Python, and packages of Debian and rpm
# make docs       builds the site of the documentation into build/site, to be opened from the disk
# make lint end2end fmt setup pins clean
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.PHONY: run test test-light docs dist others sweep compiled lint end2end fmt setup pins clean hostile fuzz
.DELETE_ON_ERROR:

# What is installed is right for as long as these files say the same; a second `make` only compares a checksum.
KEY := $(shell cat pyproject.toml packaging/constraints.txt packaging/linux/setup.sh resources/desktop/debian-libraries.txt | cksum | tr ' ' -)
READY := .venv/.ready
BIN := .venv/bin
DEMO := resources/demo/demo.pth
FUZZ_MINUTES := 10
SOURCES := $(shell find inspector tests -name '*.py')
SCREEN := $(DISPLAY)$(WAYLAND_DISPLAY)$(filter Darwin,$(shell uname))

run: $(READY)/run-$(KEY)
ifneq ($(SCREEN),)
	$(BIN)/checkpoint-inspector --demo
else
	@echo "No screen here: the report of the demo checkpoint, and a picture of its window."
	$(BIN)/checkpoint-inspector show --depth 2 $(DEMO)
	@mkdir -p screenshots
	QT_QPA_PLATFORM=offscreen $(BIN)/checkpoint-inspector screenshot $(DEMO) screenshots/demo.png
endif

# What is started by the hundred starts in half the time with its bytecode, whatever the caller's shell says.
unexport PYTHONDONTWRITEBYTECODE

# The tests are compiled once, beside the linters, which each process would do for itself otherwise, and again when one
# of them has changed. Those of the real screen mostly wait for it, and run beside all others; two would share a pointer.
test: $(READY)/test-$(KEY)
	@mkdir -p build
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target lint compiled docs
	@$(MAKE) --no-print-directory --jobs 2 end2end others
	@$(BIN)/coverage report --omit='inspector/gui/*,inspector/worker/*' --fail-under=99
	@$(BIN)/coverage report --fail-under=90
	@tail -n 1 build/pytest.txt

others: $(READY)/test-$(KEY)
	@mkdir -p build
	$(BIN)/python -m pytest -n auto --dist worksteal $(PYTEST_ARGS) --ignore tests/end2end --cov --cov-report= | tee build/pytest.txt

test-light: $(READY)/light-$(KEY)
	$(BIN)/python -m pytest -n auto --dist worksteal $(PYTEST_ARGS) -m 'not torch' --ignore tests/end2end

sweep:
	SWEEP=1 $(MAKE) test

end2end: $(READY)/test-$(KEY)
	$(BIN)/python -m pytest $(PYTEST_ARGS) tests/end2end > build/end2end.txt || { cat build/end2end.txt; exit 1; }
	@tail -n 1 build/end2end.txt

compiled: build/collected.txt

build/collected.txt: $(SOURCES) $(READY)/test-$(KEY)
	@mkdir -p build
	@$(BIN)/python -m pytest --collect-only -qq --ignore tests/end2end > $@ || { cat $@; exit 1; }

lint: $(READY)/light-$(KEY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check --quiet
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

# Strict: a warning, a link or an anchor that leads nowhere, and a request to another host end it.
docs: $(READY)/light-$(KEY)
	$(BIN)/python -m sphinx --fresh-env --fail-on-warning --keep-going --quiet docs build/site
	$(BIN)/python -m tests.docs.site build/site

fmt: $(READY)/light-$(KEY)
	$(BIN)/ruff check --fix --select I
	$(BIN)/ruff format

setup: $(READY)/test-$(KEY)

hostile: $(READY)/test-$(KEY)
	$(BIN)/python -m tests.hostile.table

# atheris follows the coverage of the readers; where it cannot be installed, seeds are changed at random.
fuzz: $(READY)/test-$(KEY)
	@$(BIN)/python -c 'import atheris' 2>/dev/null || $(BIN)/python -m pip install -q atheris || true
	@for target in pickle file zip; do \
	  mkdir -p build/fuzz; \
	  $(BIN)/python -m tests.fuzz.fuzzing $$target $$(($(FUZZ_MINUTES) * 20)) build/fuzz 2>&1 \
	    | tee build/fuzz/$$target.log | grep -a '^FINDING\|^Done\|inputs' || true; \
	done

HELD_run := run
HELD_light := run light
HELD_test := run light test
$(READY)/%-$(KEY):
	packaging/linux/setup.sh $*
	@mkdir -p $(READY) && rm -f $(READY)/* && touch $(patsubst %,$(READY)/%-$(KEY),$(HELD_$*))

# The exact versions of the present environment; run it after trying newer ones.
pins: $(READY)/test-$(KEY)
	@mkdir -p build
	@{ head -n 1 packaging/constraints.txt; $(BIN)/python -m pip list --format=freeze --exclude-editable | \
	  sed -e '/^pip==/d' -e 's/+.*//' | sort -f; } > build/pins.txt
	mv build/pins.txt packaging/constraints.txt

dist:
	packaging/linux/package.sh wheel
	packaging/linux/package.sh bundle
	packaging/linux/package.sh deb
	if command -v rpmbuild >/dev/null; then packaging/linux/package.sh rpm; else echo 'package: no rpmbuild here, so no rpm'; fi

clean:
	rm -rf build dist htmlcov screenshots .coverage .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find inspector tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
