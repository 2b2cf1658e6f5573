# Every command of the project: `make help`. Nothing is installed outside this folder: Python goes to .venv, Rust to target.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
CARGO ?= cargo
VENV := .venv
BIN := $(VENV)/bin
# The package includes the schema of scenarios, so that editors find it.
SCHEMA := python/flowloom/scenario.schema.json
PYTHON_FILES := python papers examples bench docs
# The build back end must use the installed toolchain, and never download one.
export MATURIN_NO_INSTALL_RUST := 1
export PIP_QUIET := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Figures are written to files; tests need no display.
export MPLBACKEND := agg

say = @printf '\n== %s\n' '$(1)'
install = @if command -v uv >/dev/null; then uv pip install -q --python $(BIN)/python $(1); else $(BIN)/python -m pip install -q $(1); fi
# Python code that prints requirements of pyproject.toml.
wanted = import tomllib; whole = tomllib.load(open("pyproject.toml", "rb")); project = whole["project"]; extras = project["optional-dependencies"]; print(*$(1), sep="\n")

.PHONY: help
help: ## print this list
	@printf 'make <what>:\n'
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-12s %s\n", $$1, $$2}'

# ---------------------------------------------------------------- set-up

.PHONY: tools
tools:
	@missing=; \
	need() { printf 'error: %s\n  hint: %s\n' "$$1" "$$2" >&2; missing=1; }; \
	at_least() { [ "$$(printf '%s\n%s\n' "$$1" "$$2" | sort -V | head -n 1)" = "$$1" ]; }; \
	if ! command -v $(CARGO) >/dev/null; then need 'there is no cargo' 'install Rust 1.91 or newer: rustup.rs, or the package rustc of your system if new enough'; \
	else v=$$($(CARGO) --version | awk '{print $$2}'); at_least 1.91.0 "$$v" || need "cargo $$v is too old" 'install Rust 1.91 or newer: `rustup update stable`'; fi; \
	if ! command -v $(PYTHON) >/dev/null; then need 'there is no $(PYTHON)' 'install Python 3.11 or newer, or name it: `make PYTHON=python3.12 ...`'; \
	else v=$$($(PYTHON) -c 'import platform; print(platform.python_version())'); at_least 3.11 "$$v" || need "$(PYTHON) $$v is too old" 'install Python 3.11 or newer, or name it: `make PYTHON=python3.12 ...`'; \
	command -v uv >/dev/null || $(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || need '$(PYTHON) has no venv' 'install the package python3-venv, or uv'; fi; \
	command -v gcc >/dev/null || command -v cc >/dev/null || need 'there is no C compiler' 'install gcc'; \
	[ -z "$$missing" ]

# Order-only: the check runs every time and never makes anything out of date.
$(VENV)/.installed: requirements.lock | tools
	$(call say,Python environment in $(VENV))
	@rm -rf $(VENV)
	@if command -v uv >/dev/null; then uv venv -q --seed --python $(PYTHON) $(VENV); else $(PYTHON) -m venv $(VENV); fi
	@$(BIN)/python -c '$(call wanted,whole["build-system"]["requires"] + project["dependencies"] + extras["report"])' > $(VENV)/wanted
	$(call install,-c requirements.lock -r $(VENV)/wanted)
	@touch $@

$(VENV)/.tools: $(VENV)/.installed
	$(call say,packages for lint, tests and documentation)
	$(call install,-r requirements.lock)
	@touch $@

RUST := Cargo.toml Cargo.lock .cargo/config.toml $(shell find crates -type f -not -path '*/tests/*' -not -name '*.md')
# The command line lists figures and formats from their files: crates/cli/build.rs.
RUST += $(wildcard python/flowloom/figures/kinds/*.py python/flowloom/exports/*.py)

$(VENV)/.built: $(VENV)/.installed pyproject.toml $(RUST) | tools
	$(call say,release build of the compiled part: some minutes the first time)
	@VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/maturin develop --release
	@$(BIN)/flowloom schema > $(SCHEMA)
	@touch $@

.PHONY: build
build: $(VENV)/.built ## build flowloom into .venv: then `.venv/bin/flowloom --help`

WHEELS := target/wheels
WHEEL_VENV := target/wheel-venv
WHEEL_LIMIT := 15000000

.PHONY: wheel
wheel: build ## build a wheel that installs without Rust, in target/wheels; run the Python tests on the installed package
	$(call say,wheel)
	@rm -rf $(WHEELS) $(WHEEL_VENV)
	@VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/maturin build --release --quiet --out $(WHEELS)
	@size=$$(wc -c < "$$(ls $(WHEELS)/*.whl)"); printf '%s: %s bytes\n' $(WHEELS)/*.whl "$$size"; [ "$$size" -le $(WHEEL_LIMIT) ]
	$(call say,the Python tests on the installed package)
	@$(PYTHON) -m venv $(WHEEL_VENV)
	@$(WHEEL_VENV)/bin/python -m pip install -q -c requirements.lock "$$(ls $(CURDIR)/$(WHEELS)/*.whl)[report,dask,export,seek,wasm]" hypothesis ipykernel jsonschema mypy nbclient polars pyarrow-stubs pytest pytest-xdist
	@cd $(WHEEL_VENV) && bin/python -m pytest -c $(CURDIR)/pyproject.toml --rootdir $(CURDIR) -m 'not slow' -n auto $(CURDIR)/python/tests

# In a folder of its own, so that it does not replace what other commands have compiled.
.PHONY: crates
crates: | tools ## package the crates that are published and compile each package, as `cargo publish` does (minutes); needs network, publishes nothing
	$(call say,cargo publish --dry-run)
	@CARGO_TARGET_DIR=target/crates $(CARGO) publish --workspace --dry-run --locked --quiet --allow-dirty

# ---------------------------------------------------------------- use

.PHONY: demo
demo: build ## build, run a small experiment, print its table, draw its figures
	$(call say,flowloom run examples/demo.toml)
	@$(BIN)/flowloom run examples/demo.toml --overwrite
	$(call say,flowloom report results/demo)
	@$(BIN)/flowloom report results/demo | tail -n 1
	$(call say,flowloom plot results/demo)
	@$(BIN)/flowloom plot results/demo
	$(call say,flowloom play results/who_has_the_link: packet by packet)
	@$(BIN)/flowloom run examples/who_has_the_link.toml --overwrite >/dev/null 2>&1
	@$(BIN)/flowloom play results/who_has_the_link
	$(call say,flowloom run examples/fat_tree.toml)
	@$(BIN)/flowloom run examples/fat_tree.toml --overwrite
	$(call say,flowloom report results/fat_tree: links over time and on a map)
	@$(BIN)/flowloom report results/fat_tree | tail -n 1

.PHONY: papers
papers: build ## run changed scenarios of all papers, or of PAPERS="merp ssp", at full size (long); judge their claims, write docs/papers
	@for paper in $(or $(PAPERS),$$(cd papers && ls -d */ | tr -d /)); do $(BIN)/flowloom papers $$paper --update; done
	@$(BIN)/python docs/pages.py

# ---------------------------------------------------------------- tests

# Assertions are on in our own crates; libraries are those of the release build.
CHECKED := --release --config .cargo/checked.toml --workspace --locked --quiet
TIMED := --config 'target."cfg(all())".runner = "bench/timed.sh"'
# The Python tests that were skipped, with the reasons.
SKIPPED := target/skipped.txt

.PHONY: test
test: ## run all checks that must pass: format, lint, types, Rust and Python tests, instructions per hop
	@$(MAKE) --no-print-directory -j2 core lint-python
	@$(MAKE) --no-print-directory lint-rust test-rust test-python gate
	@cut -f 2 $(SKIPPED) | sort | uniq -c | sed -E 's/ *([0-9]+) (.*)/skipped: \1 tests: \2/'
	@command -v valgrind >/dev/null || printf 'skipped: instructions per hop: no valgrind: `apt install valgrind`\n'

# Compiles while the Python packages are fetched and checked. maturin finds everything but the extension module itself compiled.
.PHONY: core
core: | tools
	@$(CARGO) build -p flowloom-py --release --locked --quiet

.PHONY: lint
lint: lint-rust lint-python

.PHONY: lint-rust
lint-rust: | tools
	$(call say,cargo fmt --check)
	@$(CARGO) fmt --all --check
	$(call say,cargo clippy)
	@$(CARGO) clippy $(CHECKED) --all-targets -- -D warnings
	$(call say,cargo doc)
	@RUSTDOCFLAGS='-D warnings' $(CARGO) doc $(CHECKED) --no-deps

.PHONY: lint-python
lint-python: $(VENV)/.tools
	$(call say,ruff)
	@$(BIN)/ruff check --quiet $(PYTHON_FILES) && $(BIN)/ruff format --check --quiet $(PYTHON_FILES)
	$(call say,mypy --strict)
	@$(BIN)/mypy

.PHONY: test-rust
test-rust: | tools
	$(call say,cargo test)
	@mkdir -p target
	@PROPTEST_CASES=100 $(CARGO) test $(CHECKED) $(TIMED) -- --format pretty --color never 2>&1 | tee target/tests.txt | sed -E '/^test .* (ok|ignored)/d;/^$$/d;/^running /d;/^WARNING: No rustdoc|^all doctests ran/d'
	@printf 'the slowest tests:\n'; sed -nE 's/^test (.*) \.\.\. ok <(.*)s>$$/\2 s  \1/p' target/tests.txt | sort -rn | sed -n '1,10s/^/  /p'

.PHONY: fuzz
fuzz: | tools ## run COUNT=200 random scenarios from number FROM=0 on by the engine and by the slow reference engine, or, with THREADS=2, on two threads
	@FLOWLOOM_FUZZ=$(or $(COUNT),200) FLOWLOOM_FUZZ_FROM=$(or $(FROM),0) $(CARGO) test $(CHECKED) $(if $(THREADS),--test threads -- --ignored random_scenarios_on_two_threads,--test runs oracle::random_scenarios_are_the_same)

.PHONY: test-python
test-python: build $(VENV)/.tools
	$(call say,pytest)
	@FLOWLOOM_SKIPPED=$(SKIPPED) $(BIN)/python -m pytest -m 'not slow' -n auto --durations 10

# With the extension module, whose libraries have more features: without it cargo would compile half of them again.
BENCH := -p flowloom-sim -p flowloom-py --bench hops --locked --quiet

.PHONY: gate
gate: | tools ## compare instructions per hop of small scenarios with bench/instructions.txt; needs valgrind
	$(call say,instructions per hop)
	@$(CARGO) bench $(BENCH) -- --gate

.PHONY: slow
slow: build $(VENV)/.tools ## run longer tests: more random scenarios and loss patterns, everything in release mode
	$(call say,cargo test --release)
	@FLOWLOOM_FUZZ=1000 FLOWLOOM_PATTERNS=10000 PROPTEST_CASES=1000 $(CARGO) test --workspace --locked --release --quiet --no-fail-fast -- --include-ignored --skip random_scenarios_on_two_threads
	$(call say,the exchange between threads in every order of their steps)
	@$(CARGO) test -p flowloom-sim --locked --release --quiet --features model --test exchange
	@$(MAKE) --no-print-directory sanitizers
	$(call say,pytest)
	@$(BIN)/python -m pytest -n auto

# The nightly toolchain is used if it is installed, and never downloaded.
NIGHTLY := rustup run nightly
nightly_has = [ -d "$$($(NIGHTLY) rustc --print sysroot 2>/dev/null)/lib/rustlib/src" ] && $(NIGHTLY) cargo $(1) >/dev/null 2>&1

.PHONY: sanitizers
sanitizers: | tools ## look for undefined behaviour in the engine (Miri, address sanitizer) and races between threads (thread sanitizer); needs nightly Rust with miri and rust-src
	$(call say,cargo miri test: the engine)
	@if $(call nightly_has,miri --version); then \
	PROPTEST_CASES=2 MIRIFLAGS=-Zmiri-disable-isolation $(NIGHTLY) cargo miri test -p flowloom-engine --locked --quiet --target-dir target/miri; \
	else printf 'skipped: no nightly toolchain with miri and rust-src\n'; fi
	$(call say,address sanitizer: the engine)
	@if $(NIGHTLY) cargo --version >/dev/null 2>&1; then \
	RUSTFLAGS=-Zsanitizer=address $(NIGHTLY) cargo test --target "$$($(NIGHTLY) rustc -vV | sed -n 's/^host: //p')" \
	-p flowloom-engine --locked --quiet --target-dir target/asan; \
	else printf 'skipped: no nightly toolchain\n'; fi
	$(call say,thread sanitizer: runs on several threads)
	@if $(call nightly_has,--version); then \
	RUSTFLAGS=-Zsanitizer=thread $(NIGHTLY) cargo test -Zbuild-std --target "$$($(NIGHTLY) rustc -vV | sed -n 's/^host: //p')" \
	-p flowloom-sim --locked --quiet --target-dir target/tsan --test threads -- benchmarks; \
	else printf 'skipped: no nightly toolchain with rust-src\n'; fi

.PHONY: equal
equal: build ## compare every point of examples, bench and smoke papers with those of a commit, REF=commit (minutes)
	@test -n "$(REF)" || { printf 'error: no commit to compare with\n  hint: `make equal REF=HEAD~1`\n' >&2; exit 2; }
	@$(BIN)/python bench/equal.py $(REF) $(if $(THREADS),--threads $(THREADS))

# ---------------------------------------------------------------- speed

.PHONY: bench
bench: build $(VENV)/.tools ## print the speed table, of all rows or, with ROWS=plug-in, of those with such words in their names: hops/s, ns and instructions per hop (by valgrind), memory; then the time to read files and of commands (minutes)
	@$(CARGO) bench $(BENCH) -- $(foreach row,$(ROWS),'$(row)')
	$(call say,readers of files)
	@$(CARGO) bench -p flowloom-scenario -p flowloom-py --bench readers --locked --quiet
	$(call say,commands)
	@$(BIN)/python bench/times.py

.PHONY: bench-parts
bench-parts: | tools ## run micro-benchmarks of the tree, the ring, ports and virtual deadlines
	@$(CARGO) bench -p flowloom-engine -p flowloom-fabric --bench parts --locked --quiet

# ---------------------------------------------------------------- generated files in the repository

.PHONY: docs
docs: build ## write docs/data.md, docs/conformance.md and docs/transports.md from the code, README.md and docs/img from runs; check the API documentation
	$(call say,docs/data.md)
	@FLOWLOOM_UPDATE=1 $(CARGO) test -p flowloom-tables --locked --quiet dictionary
	$(call say,docs/conformance.md)
	@FLOWLOOM_UPDATE=1 $(CARGO) test -p flowloom-proto --locked --quiet --test conformance the_list
	$(call say,docs/transports.md)
	@FLOWLOOM_UPDATE=1 $(CARGO) test -p flowloom-proto --locked --quiet --test transports
	$(call say,README.md and docs/img)
	@$(BIN)/python docs/readme.py
	$(call say,cargo doc)
	@RUSTDOCFLAGS='-D warnings' $(CARGO) doc $(CHECKED) --no-deps
	@echo target/doc/cli/index.html

.PHONY: pages
pages: build ## write docs/papers/*/README.md from claims.json and paper.toml, without a run
	@$(BIN)/python docs/pages.py

.PHONY: site
site: build $(VENV)/.tools ## build the documentation as a site in target/site, with executed notebooks and the Rust API
	$(call say,cargo doc)
	@RUSTDOCFLAGS='-D warnings' $(CARGO) doc $(CHECKED) --no-deps
	$(call say,target/site)
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo target/site/index.html

.PHONY: golden
golden: | tools ## accept changed results in golden files; give the reason in the commit message
	@INSTA_UPDATE=always FLOWLOOM_UPDATE=1 $(CARGO) test --workspace --locked --quiet
	@FLOWLOOM_UPDATE=1 $(CARGO) bench $(BENCH) -- --gate

.PHONY: lock
lock: | tools ## write the newest versions of the Python packages to requirements.lock
	@rm -rf $(VENV) && $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -c '$(call wanted,project["dependencies"] + [one for extra in extras.values() for one in extra])' > $(VENV)/wanted
	@$(BIN)/python -m pip install -q -r $(VENV)/wanted
	@{ echo "# Everything that flowloom's Python part runs, builds and is tested with. Written by \`make lock\`."; $(BIN)/python -m pip freeze; } > requirements.lock
	@touch $(VENV)/.installed $(VENV)/.tools

.PHONY: deny
deny: ## check licences and sources of the dependencies; needs cargo-deny
	@$(CARGO) deny check licenses bans sources

.PHONY: clean
clean: ## remove everything that was built; keep results
	rm -rf target $(VENV) python/flowloom/_core*.so $(SCHEMA) .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find python papers examples -name __pycache__ -type d -prune -exec rm -rf {} +
