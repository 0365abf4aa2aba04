# The front door. Everything a target needs is brought by scripts/setup, which is quick when all is
# there; the real build is CMake's (CMakePresets.json).
#
# With CI=true a compiler warning is an error.

build_dir := build/release
jobs := $(shell nproc)
configure_flags := -DCMAKE_COMPILE_WARNING_AS_ERROR=$(if $(CI),ON,OFF)

.PHONY: help build demo test bars clean

help:
	@echo "make demo    what it is, on a real model: plans, a text, a table of figures"
	@echo "make test    all tests"
	@echo "make bars    the figures that must be reached, measured on real models: an hour or so"
	@echo "make build   the command, $(build_dir)/bin/shorthand"
	@echo "make clean   removes build/; the packages in .venv and the models stay"

build:
	@scripts/setup
	@mkdir -p $(build_dir)
	@cmake --preset release $(configure_flags) >$(build_dir)/configure.log 2>&1 \
	  || { cat $(build_dir)/configure.log; exit 1; }
	@cmake --build $(build_dir) --parallel $(jobs)

test: build
	@scripts/fetch-models smollm2 >/dev/null \
	  || echo "test: SmolLM2 could not be fetched; the tests that need it are skipped"
	@scripts/run-tests $(build_dir) --parallel $(jobs)

demo: build
	@scripts/demo $(build_dir)/bin/shorthand

bars:
	@scripts/setup
	@scripts/bars

clean:
	@rm -rf build
