# make run      builds, makes data and shows what Gristmill does with it
# make check    format, lints and unit tests: some minutes once everything was built
# make test     every check: format, lints, tests in Rust and Python
# make test-ceph  files of a real Ceph: in buckets, on CephFS and in a pool, which 'make test' leaves out
# make ceph-demo  a small Ceph with nodes over it, and folds inside its storage daemons
# make test-emulators  files of servers that stand for Azure and Google, which 'make test' leaves out
# make bench    all benchmarks; figures and pictures go to bench/results
# make docs     the site of the documentation, in target/site
# make figures  the papers' figures in the lab (root): bench/results/lab and docs/figures.md
# make audit    licences, sources and known defects of all dependencies (cargo-deny)
# make clean    removes what the above made, but for the Rust build

CARGO ?= cargo
PYTHON ?= python3
VENV := .venv
# The package as 'pip install .' builds it, but without optimisation and from what is built already, with the same features.
PYTHON_DOOR := CARGO_TARGET_DIR=target MATURIN_PEP517_ARGS="--profile dev --features as-tested" $(VENV)/bin/pip install --quiet .
RG := .tools/bin/rg
# Files of tests that run at once. Many tests wait for processes, so there is one more than there are processors.
TESTS_AT_ONCE := $(shell n=$$(($$(nproc) + 1)); echo $$((n < 8 ? n : 8)))
# Tests marked 'alone': they use the whole machine, so others beside them would run out of time.
TESTS_ALONE := tests/test_under_attack.py

.PHONY: run check test docs bench figures audit build clean

run: build $(VENV)/numpy
	scripts/demo

build:
	$(CARGO) build --release -p gristmill

check:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --all-features -- -D warnings
	$(CARGO) test --workspace --all-features --lib --quiet

# A whole run compiles each crate once. What the next compilation could use takes 6 GB, and on a full disk no test runs.
test: export CARGO_INCREMENTAL = 0
test: $(VENV)/ready $(RG)
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --all-features -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --quiet
	$(CARGO) test --workspace --all-features
	$(CARGO) build --workspace --all-features --bins --tests
	$(PYTHON_DOOR)
	scripts/browser
	scripts/web_server
	GRISTMILL_BIN=target/debug/gristmill $(VENV)/bin/python -m pytest -q -rs -m "not alone and not ceph and not emulators" \
	    -n $(TESTS_AT_ONCE) --dist loadfile --no-loadscope-reorder tests bench
	GRISTMILL_BIN=target/debug/gristmill $(VENV)/bin/python -m pytest -q -rs -m alone $(TESTS_ALONE)
	scripts/fuzz 3
	$(VENV)/bin/python bench/all.py --quick --probe target/debug/gristmill-probe --gristmill target/debug/gristmill
	$(VENV)/bin/python bench/lab run son2010_fig10 dosas2012_fig06 --quick \
	    --probe target/debug/gristmill-probe --gristmill target/debug/gristmill

# Some minutes, and about 300 MB of Debian packages. As root it installs them.
.PHONY: test-ceph
test-ceph: $(VENV)/ready
	$(CARGO) build --workspace --all-features --bins
	$(PYTHON_DOOR)
	scripts/ceph
	GRISTMILL_BIN=target/debug/gristmill $(VENV)/bin/python -m pytest -q -rs -m ceph tests/test_radosgw.py tests/test_cephfs.py \
	    tests/test_cephfs_changes.py tests/test_rados.py tests/test_object_class.py \
	    tests/test_ceph_registry.py tests/test_ceph_monitors.py

# The same installation, and a cluster that a person can watch: nodes over a pool, and folds inside the storage daemons.
.PHONY: ceph-demo
ceph-demo: $(VENV)/ready
	$(CARGO) build --workspace --all-features --bins
	$(CARGO) build -p gristmill-object-class
	scripts/ceph
	$(VENV)/bin/python tests/ceph_cluster.py --object-class target/debug/libcls_gristmill.so -- scripts/ceph_demo

# Some minutes more where Azurite (npm) and fake-gcs-server (Go) are not installed yet.
.PHONY: test-emulators
test-emulators: $(VENV)/ready
	$(CARGO) build --workspace --all-features --bins
	$(PYTHON_DOOR)
	scripts/emulators $(CARGO) test -p gristmill-sources --test emulators
	GRISTMILL_BIN=target/debug/gristmill scripts/emulators $(VENV)/bin/python -m pytest -q -rs -m emulators tests/test_emulators.py

# The package is installed for its reference; whatever is wrong with a page or a link is an error.
docs: $(VENV)/ready
	$(PYTHON_DOOR)
	$(VENV)/bin/python -m sphinx -E -W --keep-going -q -b html -d target/doctrees docs target/site

bench: build $(VENV)/ready $(RG)
	$(CARGO) build --release -p gristmill-probe
	CARGO_TARGET_DIR=target $(VENV)/bin/pip install --quiet .
	$(VENV)/bin/python bench/all.py

figures: $(VENV)/ready
	$(CARGO) build --release -p gristmill -p gristmill-probe
	$(VENV)/bin/python bench/lab run all
	$(VENV)/bin/python bench/lab check
	$(VENV)/bin/python bench/lab figures

audit:
	scripts/audit

# A mark beside the packages, so that they are installed again only when the lists change. uv takes seconds, and pip minutes. uv does
# not read pip's configuration, so it is told the server, and pip is tried if it fails.
REQUIREMENTS := tests/requirements.txt bench/requirements.txt docs/requirements.txt
$(VENV)/ready: $(REQUIREMENTS)
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet 'uv>=0.9,<1'
	server="$${PIP_INDEX_URL:-$$($(VENV)/bin/pip config get global.index-url 2>/dev/null)}"; \
	$(VENV)/bin/uv pip install --quiet --no-cache --python $(VENV) $${server:+--default-index "$$server"} $(REQUIREMENTS:%=-r %) \
	    || $(VENV)/bin/pip install --quiet $(REQUIREMENTS:%=-r %)
	touch $@

# The demonstration makes its data with NumPy, and needs nothing else.
$(VENV)/numpy: bench/requirements.txt
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet $$(grep '^numpy==' $<)
	touch $@

$(RG):
	$(CARGO) install --quiet --locked --root .tools ripgrep

clean:
	rm -rf $(VENV) .tools target/demo target/bench-data
