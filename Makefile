# One way to do each thing. Everything is idempotent and quick when nothing changed.
#
#   make demo     build, install into .venv, run examples/demo.py
#   make test     all tests: Rust, then Python end to end
#   make test-tf  those with TensorFlow, in an environment of their own; part of make test
#   make test-torch  those with PyTorch, likewise, if it is installed or CI is set
#   make test-packages  packages from the index that use Ray, likewise
#   make test-ui  those of the dashboard's page, in a browser; part of make test
#   make quick    the fast part of them, under two minutes
#   make limits   the long forms of tests/limits and of the properties: an hour on a quiet machine
#   make chaos    faults under load on five hosts, CHAOS_SECONDS of them
#   make fuzz     every decoder under libFuzzer, FUZZ_SECONDS each
#   make asan     the tests of sys, channel and store under AddressSanitizer
#   make check    formatting, lints, types, and our habits (tests/habits)
#   make bench    benchmarks against Ray and multiprocessing; ARGS=--quick
#   make wheels   the sdist and a wheel for every Python and machine, in dist/release; ARGS="--pythons 3.12"
#   make try-wheels  installs each into a clean environment and uses it
#   make release  both, with checksums and notes; docs/releasing.md
#   make clean

PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
BIN := python/oxiray/_bin
VENV_WHEELS := .venv-wheels
PY_WHEELS := $(VENV_WHEELS)/bin/python
# The same interpreter for every cargo command, or each would build the binding anew.
export PYO3_PYTHON := $(CURDIR)/$(PY)
STAMP := $(VENV)/.stamps
# TensorFlow is large, and most work is done without it.
VENV_TF := .venv-tf
PY_TF := $(VENV_TF)/bin/python
STAMP_TF := $(VENV_TF)/.stamps
VENV_PACKAGES := .venv-packages
PY_PACKAGES := $(VENV_PACKAGES)/bin/python
STAMP_PACKAGES := $(VENV_PACKAGES)/.stamps
VENV_TORCH := .venv-torch
PY_TORCH := $(VENV_TORCH)/bin/python
STAMP_TORCH := $(VENV_TORCH)/.stamps
STAMP_WHEELS := $(VENV_WHEELS)/.stamps
# Each Python has its own wheel, so none is the one to build for.
WITH_WHEEL_TOOLS := env -u PYO3_PYTHON PATH="$(CURDIR)/$(VENV_WHEELS)/bin:$$PATH" nice

RUST := $(shell find crates -name '*.rs' -o -name '*.proto' -o -name Cargo.toml) Cargo.toml Cargo.lock
PACKAGE := $(shell find python/oxiray -name '*.py' -o -name '*.pyi' -o -name py.typed) $(wildcard packaging/*.py)
CAFFE := $(shell find python/oxiray-caffe -type f)
ALIAS := $(shell find python/oxiray-as-ray -name '*.py' -o -name pyproject.toml)

# The dashboard's page is built by Node. Without it everything else is built all the same.
UI := $(shell find ui/src ui/public -type f) ui/index.html ui/vite.config.ts ui/tsconfig.json ui/licences.mjs
PAGES := $(if $(shell command -v npm),$(STAMP)/pages)

# cargo-nextest where it is installed: it is faster, and ends a test that hangs (.config/nextest.toml).
# cargo test does neither.
CARGO_TEST := $(shell cargo nextest --version >/dev/null 2>&1 && echo "cargo nextest run" || echo "cargo test")
CARGO_LIMITS := $(if $(findstring nextest,$(CARGO_TEST)),$(CARGO_TEST) --profile limits,$(CARGO_TEST))

.PHONY: demo build test test-programs test-tf test-torch test-packages test-ui quick limits chaos fuzz asan \
    check bench wheels try-wheels release clean
.DELETE_ON_ERROR:

demo: build
	$(PY) examples/demo.py

build: $(STAMP)/oxiray $(STAMP)/alias

test: build $(STAMP)/test-tools test-programs
	$(CARGO_TEST) --workspace
	$(CARGO_TEST) -p oxiray-channel --features shuttle
	$(CARGO_TEST) -p oxiray-store --features shuttle
	$(CARGO_TEST) -p oxiray-worker --features shuttle
	$(PY) -m pytest
	$(MAKE) test-tf
	$(if $(CI)$(wildcard $(STAMP_TORCH)/torch),$(MAKE) test-torch,@echo "test: SKIPPED $(TORCH_TESTS): PyTorch is 3 GB to install, which make test-torch does" >&2)
	$(if $(CI)$(wildcard $(STAMP_PACKAGES)/packages),$(MAKE) test-packages,@echo "test: SKIPPED tests/programs/test_packages.py: make test-packages installs what it needs" >&2)
	$(MAKE) test-ui

# Programs that some tests start: a Redis, hosts in network namespaces, forged certificates, a browser.
# Installed where that can be done; else those tests say that they are skipped, or fail with CI set.
TEST_PROGRAMS := redis-server:redis-server ip:iproute2 tc:iproute2 openssl:openssl \
    chromium:chromium
test-programs:
	@missing=; for pair in $(TEST_PROGRAMS); do \
	    PATH="$$PATH:/usr/sbin:/sbin" command -v $${pair%%:*} >/dev/null || missing="$$missing $${pair##*:}"; \
	done; \
	if [ -z "$$missing" ]; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "test: installing$$missing"; \
	    (apt-get install -y -q $$missing || (apt-get update -q && apt-get install -y -q $$missing)) >/dev/null \
	        || echo "test: NOT installed:$$missing; tests that need them are skipped" >&2; \
	else \
	    echo "test: not found:$$missing; tests that need them are skipped (Debian: apt-get install$$missing)" >&2; \
	fi

# Caffe's programs run here too: OpenCV, which reads its nets, is large as well. Version 5 cannot.
# Where TensorFlow cannot be installed, that is said and the tests are left out; with CI set, which
# .ci/run does, it is an error: there nothing is left out unseen.
TF_TESTS := tests/programs/test_caffe.py tests/api/test_tensorflow_variables.py tests/programs/test_examples.py::test_tensorflow \
    tests/programs/test_examples.py::test_caffe \
    "tests/programs/test_notebooks.py::test_each_runs_from_top_to_bottom[11_neural_net_weights]" \
    tests/programs/test_users_programs.py
test-tf: build
	@if $(MAKE) --no-print-directory $(STAMP_TF)/tensorflow; then \
	    $(MAKE) --no-print-directory $(STAMP_TF)/oxiray && $(PY_TF) -m pytest $(TF_TESTS); \
	elif [ -n "$(CI)" ]; then \
	    echo "test-tf: TensorFlow cannot be installed into $(VENV_TF), see above; with CI set this is an error" >&2; \
	    exit 1; \
	else \
	    echo 'test-tf: SKIPPED $(TF_TESTS): TensorFlow cannot be installed into $(VENV_TF), see above. Is there a network?' >&2; \
	fi

# Perfetto, to open a trace in, is in viztracer.
TORCH_TESTS := tests/api/test_torch_variables.py tests/programs/test_examples.py::test_torch tests/objects/test_zero_copy.py
test-torch: $(STAMP_TORCH)/oxiray
	$(PY_TORCH) -m pytest $(TORCH_TESTS) -k "torch or tensor"

# As users would install them, on the alias: nothing of theirs is changed.
test-packages: $(STAMP_PACKAGES)/oxiray
	$(PY_PACKAGES) -m pytest tests/programs/test_packages.py
	$(PY_PACKAGES) -m pip check

test-ui: build test-programs $(STAMP)/test-tools
ifeq ($(PAGES),)
	@echo "test-ui: SKIPPED: npm is not found; the page is built and tested with Node 20.19 or later" >&2
	@[ -z "$(CI)" ]
else
	cd ui && npm test
	@if command -v chromium >/dev/null; then \
	    node --test --test-concurrency=1 --test-reporter=spec tests/browser/; \
	else \
	    echo "test-ui: SKIPPED tests/browser: chromium is not found" >&2; \
	    [ -z "$(CI)" ]; \
	fi
endif

quick: build $(STAMP)/test-tools
	$(CARGO_TEST) --workspace --lib
	$(PY) -m pytest -m "not slow" -x -q

# make test runs the short forms of both.
limits: build $(STAMP)/test-tools
	OXIRAY_TEST_LONG=1 $(PY) -m pytest tests/limits
	PROPTEST_CASES=30000 $(CARGO_LIMITS) -p oxiray-owner -p oxiray-store -p oxiray-node -p oxiray-control

# Five hosts in network namespaces, which need root. A run can be had again by its seed, which it says;
# ARGS="--only cut,node-kill" draws from those alone.
CHAOS_SECONDS ?= 600
chaos: build $(STAMP)/test-tools test-programs
	PYTHONPATH=tests $(PY) -m chaos --seconds $(CHAOS_SECONDS) $(if $(CHAOS_SEED),--seed $(CHAOS_SEED)) $(ARGS)

# What a decoder is given comes from other processes and machines. CI does it for 20 seconds each, from
# the seeds: what broke once must not again.
FUZZ_SECONDS ?= 60
fuzz:
	@if command -v c++ >/dev/null; then nice fuzz/run $(FUZZ_SECONDS); else \
	    echo "fuzz: SKIPPED: libFuzzer is built by a C++ compiler, and c++ is not found" >&2; \
	    [ -z "$(CI)" ]; \
	fi

# Of the crates that share memory. The flag wants a nightly compiler, or that variable; the instrumented
# crates are apart from the others.
HOST := $(shell rustc -vV | sed -n 's/^host: //p')
asan:
	RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address CARGO_TARGET_DIR=target/asan \
	    $(CARGO_TEST) --target $(HOST) -p oxiray-sys -p oxiray-channel -p oxiray-store

check: $(STAMP)/check-tools $(if $(PAGES),$(STAMP)/node-modules)
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	PYTHONPATH=tests $(PY) -m habits
	$(if $(PAGES),cd ui && npm run check,@echo "check: npm is not found: ui/ is not checked")

bench: build
	$(PY) bench/run.py $(ARGS)

wheels: $(STAMP_WHEELS)/tools $(PAGES)
	$(WITH_WHEEL_TOOLS) $(PY_WHEELS) packaging/wheels.py $(ARGS)

try-wheels: $(STAMP_WHEELS)/tools
	$(PY_WHEELS) packaging/try_wheels.py dist/release/oxiray-*linux*.whl --alias dist/release/ray-*.whl

release: $(STAMP_WHEELS)/tools $(PAGES)
	$(WITH_WHEEL_TOOLS) $(PY_WHEELS) packaging/release.py $(ARGS)

clean:
	cargo clean
	rm -rf $(VENV) $(VENV_TF) $(VENV_TORCH) $(VENV_PACKAGES) $(VENV_WHEELS) $(BIN) dist python/oxiray/*.so \
	    ui/dist ui/node_modules

$(STAMP)/venv:
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(v < (3, 10) and f"Python 3.10 or later is needed, {sys.executable} is {v[0]}.{v[1]}; set PYTHON=")'
	$(PYTHON) -m venv $(VENV)
	$(PY) -m pip install -q --disable-pip-version-check "maturin>=1.16,<2" "cloudpickle>=3.1"
	@mkdir -p $(STAMP) && touch $@

# Zig is the linker of wheels, so that they run where glibc is older than here.
$(STAMP_WHEELS)/tools: $(STAMP)/venv
	$(PYTHON) -m venv $(VENV_WHEELS)
	$(PY_WHEELS) -m pip install -q --disable-pip-version-check "maturin>=1.16,<2" "cargo-zigbuild>=0.24" "ziglang>=0.17,<0.18" auditwheel
	@mkdir -p $(STAMP_WHEELS) && touch $@

$(STAMP)/node-modules: ui/package.json ui/package-lock.json
	cd ui && npm ci --no-audit --no-fund --loglevel=error
	@mkdir -p $(STAMP) && touch $@

# A page that cannot be built, say without a network, is said and left out; with CI set it is an error.
$(STAMP)/pages: ui/package.json ui/package-lock.json $(UI)
	@if $(MAKE) --no-print-directory $(STAMP)/node-modules && (cd ui && npm run --silent build -- --logLevel=warn); then \
	    mkdir -p $(STAMP) && touch $@; \
	else \
	    echo "build: the dashboard has no pages: see above. Node 20.19 or later and a network are needed" >&2; \
	    [ -z "$(CI)" ]; \
	fi

# By the build backend, as `pip install .` does it (packaging/), but with symbols: profilers want them.
# The wheel itself is installed, as a user would: what is tested is what ships.
$(STAMP)/oxiray: $(STAMP)/venv $(PAGES) $(RUST) $(PACKAGE) pyproject.toml
	rm -f dist/*.whl
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" OXIRAY_KEEP_SYMBOLS=1 \
	    $(PY) -m pip wheel -q --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir dist .
	$(PY) -m pip install -q --disable-pip-version-check --force-reinstall --no-deps dist/oxiray-*.whl
	@touch $@

$(STAMP)/alias: $(STAMP)/venv $(ALIAS)
	$(PY) -m pip install -q --disable-pip-version-check --force-reinstall --no-deps ./python/oxiray-as-ray
	@touch $@

$(STAMP)/test-tools: $(STAMP)/venv pyproject.toml
	$(PY) -m pip install -q --disable-pip-version-check "pytest>=9" pytest-timeout hypothesis numpy pandas pyarrow pillow tqdm pyyaml \
	    joblib nbclient ipykernel schemathesis py-spy uv opentelemetry-sdk "viztracer>=1.1,<1.2" "readme_renderer[md]" \
	    "tomli; python_version < '3.11'" "exceptiongroup; python_version < '3.11'"
	@touch $@

$(STAMP)/check-tools: $(STAMP)/venv pyproject.toml
	$(PY) -m pip install -q --disable-pip-version-check "ruff>=0.17" "mypy>=2" "tomli; python_version < '3.11'"
	@touch $@

# One try each: without a network this ends soon.
$(STAMP_TF)/tensorflow: $(STAMP)/venv pyproject.toml
	$(PYTHON) -m venv $(VENV_TF)
	$(PY_TF) -m pip install -q --disable-pip-version-check --retries 1 tensorflow-cpu scikit-learn \
	    "opencv-python-headless<5" "cloudpickle>=3.1" "pytest>=9" pytest-timeout nbclient ipykernel pillow tqdm
	@mkdir -p $(STAMP_TF) && touch $@

$(STAMP_TF)/oxiray: $(STAMP_TF)/tensorflow $(STAMP)/oxiray $(STAMP)/alias $(CAFFE)
	$(PY_TF) -m pip install -q --disable-pip-version-check --force-reinstall --no-deps \
	    dist/oxiray-*.whl ./python/oxiray-as-ray ./python/oxiray-caffe
	@touch $@

# The package index has it with libraries for graphics cards only.
$(STAMP_TORCH)/torch: $(STAMP)/venv pyproject.toml
	$(PYTHON) -m venv $(VENV_TORCH)
	$(PY_TORCH) -m pip install -q --disable-pip-version-check torch numpy "cloudpickle>=3.1" "pytest>=9" pytest-timeout hypothesis
	@mkdir -p $(STAMP_TORCH) && touch $@

$(STAMP_TORCH)/oxiray: $(STAMP_TORCH)/torch $(STAMP)/oxiray $(STAMP)/alias
	$(PY_TORCH) -m pip install -q --disable-pip-version-check --force-reinstall --no-deps \
	    dist/oxiray-*.whl ./python/oxiray-as-ray
	@touch $@

$(STAMP_PACKAGES)/packages: $(STAMP)/venv pyproject.toml
	$(PYTHON) -m venv $(VENV_PACKAGES)
	$(PY_PACKAGES) -m pip install -q --disable-pip-version-check "dask[array,dataframe]" modin joblib scikit-learn \
	    sktime pymoo deephyper "cloudpickle>=3.1" "pytest>=9" pytest-timeout
	@mkdir -p $(STAMP_PACKAGES) && touch $@

$(STAMP_PACKAGES)/oxiray: $(STAMP_PACKAGES)/packages $(STAMP)/oxiray $(STAMP)/alias
	$(PY_PACKAGES) -m pip install -q --disable-pip-version-check --force-reinstall --no-deps \
	    dist/oxiray-*.whl ./python/oxiray-as-ray
	@touch $@
