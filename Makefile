# One way to do each thing. Everything is idempotent and quick when nothing changed.
#
#   make demo     build, install into .venv, run examples/demo.py
#   make test     all tests: Rust, then Python end to end
#   make test-tf  those with TensorFlow, in an environment of their own; part of make test
#   make test-torch  those with PyTorch, likewise, if it is installed or CI is set
#   make test-ui  those of the dashboard's page, in a browser; part of make test
#   make quick    the fast part of them, under two minutes
#   make limits   the long forms of tests/limits and of the properties: an hour on a quiet machine
#   make fuzz     every decoder under libFuzzer, FUZZ_SECONDS each
#   make asan     the tests of sys, channel and store under AddressSanitizer
#   make check    formatting, lints, types, and our habits (tests/habits)
#   make bench    benchmarks against Ray and multiprocessing; ARGS=--quick
#   make clean

PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
BIN := python/oxiray/_bin
# The same interpreter for every cargo command, or each would build the binding anew.
export PYO3_PYTHON := $(CURDIR)/$(PY)
STAMP := $(VENV)/.stamps
# TensorFlow is large, and most work is done without it.
VENV_TF := .venv-tf
PY_TF := $(VENV_TF)/bin/python
STAMP_TF := $(VENV_TF)/.stamps
VENV_TORCH := .venv-torch
PY_TORCH := $(VENV_TORCH)/bin/python
STAMP_TORCH := $(VENV_TORCH)/.stamps

RUST := $(shell find crates -name '*.rs' -o -name '*.proto' -o -name Cargo.toml) Cargo.toml Cargo.lock
PACKAGE := $(shell find python/oxiray -name '*.py' -o -name '*.pyi' -o -name py.typed)
CAFFE := $(shell find python/oxiray-caffe -type f)
ALIAS := $(shell find python/oxiray-as-ray -name '*.py' -o -name pyproject.toml)

# The dashboard's page is built by Node. Without it everything else is built all the same.
UI := $(shell find ui/src ui/public -type f) ui/index.html ui/vite.config.ts ui/tsconfig.json
PAGES := $(if $(shell command -v npm),$(STAMP)/pages)

# cargo-nextest where it is installed: it is faster, and ends a test that hangs (.config/nextest.toml).
# cargo test does neither.
CARGO_TEST := $(shell cargo nextest --version >/dev/null 2>&1 && echo "cargo nextest run" || echo "cargo test")
CARGO_LIMITS := $(if $(findstring nextest,$(CARGO_TEST)),$(CARGO_TEST) --profile limits,$(CARGO_TEST))

.PHONY: demo build test test-programs test-tf test-torch test-ui quick limits fuzz asan check bench clean
.DELETE_ON_ERROR:

demo: build
	$(PY) examples/demo.py

build: $(STAMP)/oxiray $(STAMP)/alias

test: build $(STAMP)/test-tools test-programs
	$(CARGO_TEST) --workspace
	$(CARGO_TEST) -p oxiray-channel --features shuttle
	$(CARGO_TEST) -p oxiray-store --features shuttle
	$(PY) -m pytest
	$(MAKE) test-tf
	$(if $(CI)$(wildcard $(STAMP_TORCH)/torch),$(MAKE) test-torch,@echo "test: SKIPPED $(TORCH_TESTS): PyTorch is 3 GB to install, which make test-torch does" >&2)
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

clean:
	cargo clean
	rm -rf $(VENV) $(VENV_TF) $(VENV_TORCH) $(BIN) dist python/oxiray/*.so ui/dist ui/node_modules

$(STAMP)/venv:
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(v < (3, 11) and f"Python 3.11 or later is needed, {sys.executable} is {v[0]}.{v[1]}; set PYTHON=")'
	$(PYTHON) -m venv $(VENV)
	$(PY) -m pip install -q --disable-pip-version-check "maturin>=1.16,<2" "cloudpickle>=3.1"
	@mkdir -p $(STAMP) && touch $@

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

# The programs go into the package first: the wheel carries them. They carry the dashboard's pages.
$(STAMP)/programs: $(STAMP)/venv $(PAGES) $(RUST)
	@$(if $(PAGES),:,echo "build: npm is not found, so the dashboard has no pages" >&2)
	cargo build --profile programs -p oxiray-cli -p oxiray-daemon
	mkdir -p $(BIN)
	for program in oxiray oxirayd; do \
	    cmp -s target/programs/$$program $(BIN)/$$program || install -m 755 target/programs/$$program $(BIN)/$$program; \
	done
	@touch $@

# The wheel itself is installed, as a user would: what is tested is what ships.
$(STAMP)/oxiray: $(STAMP)/programs $(PACKAGE) pyproject.toml
	rm -rf dist
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" $(VENV)/bin/maturin build -q --release --out dist -i $(PY)
	$(PY) -m pip install -q --disable-pip-version-check --force-reinstall --no-deps dist/oxiray-*.whl
	@touch $@

$(STAMP)/alias: $(STAMP)/venv $(ALIAS)
	$(PY) -m pip install -q --disable-pip-version-check --force-reinstall --no-deps ./python/oxiray-as-ray
	@touch $@

$(STAMP)/test-tools: $(STAMP)/venv pyproject.toml
	$(PY) -m pip install -q --disable-pip-version-check "pytest>=9" pytest-timeout hypothesis numpy pandas pyarrow pillow tqdm pyyaml \
	    joblib nbclient ipykernel schemathesis py-spy "viztracer>=1.1,<1.2"
	@touch $@

$(STAMP)/check-tools: $(STAMP)/venv pyproject.toml
	$(PY) -m pip install -q --disable-pip-version-check "ruff>=0.17" "mypy>=2"
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
