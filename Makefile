# Set-up, tests and tools. Needs make, Python 3.10 or newer and pip; everything else goes into $(VENV).
#
#   make demo    set up, then build and run three kernels and print their results
#   make test    set up, then run all tests; of some laws with many cases a sample
#   make test-whole  all tests with all cases
#   make bench   measure, print a table, keep it as JSON
#   make docs    write what comes from declarations: docs/ops, docs/layers, docs/onnx.md, docs/tflite.md, the stub of `S`, classes of C functions
#   make site    the documentation as a site with a search, in build/site
#   make wheel   build dist/compassc-VERSION-*.whl, and try it in a clean environment: README.md's tour without a compiler on PATH
#   make fuzz    N random programs from SEED on, compiled and in PySim (N=2000 SEED=0)
#   make test-security  every attack by every means; make test has each by one
#   make test-onnx  ONNX's node tests by the references, on a simulator (DEVICE=X2_1204), and as programs of Relay; make test has a sample
#   make test-networks  whole networks in every form of numbers, each layer on the simulator against its reference
#                (NETWORKS=resnet18 FORMS=int8,w8a16); make test has a sample
#   make zoo     trained networks in every form of numbers: the table of docs/zoo.md (NETWORKS=vit,words); make test has a sample
#   make replay  what every kernel gave and cost when the record was made, held against today (JOBS=4, CASES='layers/Softmax forms');
#                tests/README.md says how the record is changed; make test has a sample
#   make fuzz-layers  N random networks of layers from SEED on, on the simulator and by the references
#   make fuzz-X  COUNT damaged inputs for the reader X (COUNT=1000000 SEED=0): in Python container, debug, modules, npy,
#                graphs, stages, cli (command lines), statistics, samples, settings, records, te-traces, tir-traces; in C, under sanitizers and guided by coverage, object, lines, native-container, aiff, rpcd
#   make fuzz-te  COUNT random schedules of random tensor expressions, of stages and of blocks (COUNT=10000), built for TARGET (llvm) where one is
#                given
#   make storm   COUNT jobs per family through the libraries for the vendor's driver, from many threads (COUNT=10000)
#   make fuzz-extents  COUNT random and damaged programs of index arithmetic (COUNT=1000000)
#   make soak-builds  COUNT builds beside each other, some killed, with a damaged cache (COUNT=100)
#   make fuzz-replies  COUNT forged messages of an engine (COUNT=1000000, about five minutes)
#   make soak    thousands of jobs and faults, and what is left of them
#   make lint    formatting, lint and types; `make format` mends the first two
#   make clean   remove what builds and tests left; `make distclean` removes $(VENV) too
#
# PYTHON=...         the Python that makes the environment (default: python3)
# COMPASS_CLANG=...  a clang of yours, new enough for `compassc doctor`; without it the clang wheel is installed, so that
#                    every machine compiles with the same compiler whatever its PATH holds

PYTHON ?= python3
VENV ?= .venv
JOBS ?= 2
N ?= 2000
SEED ?= 0
COUNT ?= $(if $(filter storm,$(MAKECMDGOALS)),10000,1000000)

BIN := $(VENV)/bin
# One worker more than processors, for some tests wait. Each begins with its part of the files, so that few of them are on two,
# with what their tests share.
PYTEST := $(BIN)/python -m pytest -n $$(($(JOBS) + 1)) --dist worksteal
INSTALLED := $(VENV)/.installed
DEVELOPED := $(VENV)/.developed
ENGINE := $(VENV)/.engine
COMMA := ,
CLANG := $(if $(COMPASS_CLANG),,clang)
# Of the clang wheel, which nothing here calls or loads: a sixth of the environment, where that is our own.
UNUSED := $(if $(and $(CLANG),$(filter .venv,$(VENV))),bin/clangd bin/clang-tidy lib/libclang.so*)
PIP := -m pip --disable-pip-version-check --quiet
TYPED := compass_core compass_runtime compass_sim \
  $(addprefix compassc.,analysis build check cli cluster codegen compat driver dsl errors evaluation gbuilder importers graph ir language layers models onnx_backend operators ops pass_manager passes pysim quantizer reference relay settings targets te tir toolchain topi tuning)
DEMO := build/demo

.PHONY: demo test test-whole test-onnx test-security test-networks zoo replay fuzz fuzz-layers fuzz-replies fuzz-te soak fuzz-extents soak-builds storm bench docs site wheel lint format setup \
  clean distclean
.DELETE_ON_ERROR:

demo: $(ENGINE)
	@mkdir -p $(DEMO)
	@cat examples/vadd/kernel.py
	@echo; echo "== its two commands: compassc build, compass-run"
	@$(BIN)/python -c 'import numpy; numpy.save("$(DEMO)/a.npy", numpy.arange(8, dtype="int32"))'
	$(BIN)/compassc build examples/vadd/kernel.py -t X2_1204 -o $(DEMO)/aipu.bin
	$(BIN)/compass-run $(DEMO)/aipu.bin --inputs $(DEMO)/a.npy --outputs-dir $(DEMO)
	@$(BIN)/python -c 'import numpy; [print(n, numpy.load(f"$(DEMO)/{n}.npy")) for n in ("a", "output0")]'
	@echo; echo "== three examples by command line, Python API and PySim, compared with NumPy"
	@$(BIN)/python examples/run.py vadd dynamic_add softmax

# Byte code is kept whatever the environment says: some 500 processes import the compiler.
test test-whole test-security: export PYTHONDONTWRITEBYTECODE :=

test: $(DEVELOPED) $(ENGINE)
	@$(BIN)/python -m compileall -q -j $(JOBS) compassc core runtime sim
	$(PYTEST)

test-whole: $(DEVELOPED) $(ENGINE)
	$(PYTEST) --whole

test-security: $(DEVELOPED) $(ENGINE)
	$(PYTEST) --whole tests/security

test-onnx: $(DEVELOPED) $(ENGINE)
	@$(BIN)/python -m tests.importers.node_tests --jobs $(JOBS)
	@$(BIN)/python -m tests.relay.onnx_programs --jobs $(JOBS)
	$(if $(DEVICE),@$(BIN)/python -m tests.importers.node_tests --jobs $(JOBS) --device $(DEVICE))

test-networks: $(DEVELOPED) $(ENGINE)
	@$(BIN)/python -m tests.networks --jobs $(JOBS) $(if $(NETWORKS),--networks $(NETWORKS)) $(if $(FORMS),--forms $(FORMS))

zoo: $(DEVELOPED) $(ENGINE)
	@$(BIN)/python -m tests.zoo $(if $(NETWORKS),--networks $(NETWORKS))

replay: $(DEVELOPED) $(ENGINE)
	@$(BIN)/python -m tests.replay compare --jobs $(JOBS) $(foreach case,$(CASES),'$(case)')

fuzz: $(DEVELOPED) $(ENGINE)
	@$(BIN)/python -m tests.fuzz --seed $(SEED) --count $(N) --jobs $(JOBS) $(if $(SCHEDULER),--scheduler $(SCHEDULER))

fuzz-%: $(DEVELOPED) $(ENGINE)
	@$(BIN)/python -m tests.hostile $* --count $(COUNT) --seed $(SEED)

fuzz-layers: $(DEVELOPED) $(ENGINE)
	@$(BIN)/python -m tests.layers.random_networks --seed $(SEED) --count $(N) --jobs $(JOBS) $(if $(SCHEDULER),--scheduler $(SCHEDULER))

# Ten threads share the jobs.
storm: $(DEVELOPED) $(ENGINE)
	STORM_ROUNDS=$$(($(COUNT) / 10)) $(BIN)/python -m pytest -q tests/runtime/test_sim_plugin.py -k many_threads

fuzz-te: $(DEVELOPED)
	$(BIN)/python -m tests.te.random_schedules --count $(or $(filter-out 1000000,$(COUNT)),10000) --seed $(SEED) --target "$(TARGET)"
	$(BIN)/python -m tests.tir.random_blocks --count $(or $(filter-out 1000000,$(COUNT)),10000) --seed $(SEED) --target "$(TARGET)"
	$(BIN)/python -m tests.tir.random_kernels --count $(or $(filter-out 1000000,$(COUNT)),10000) --seed $(SEED) --target "$(TARGET)"

fuzz-extents: $(DEVELOPED)
	$(BIN)/python -m tests.extents.fuzz --count $(COUNT) --seed $(SEED)

soak-builds: $(DEVELOPED) $(ENGINE)
	@$(BIN)/python -m tests.builds.soak --count $(or $(filter-out 1000000,$(COUNT)),100) --seed $(SEED)

fuzz-replies: $(DEVELOPED) $(ENGINE)
	$(BIN)/python -m tests.sim.fuzz_replies --count $(COUNT) --seed $(SEED)

soak: $(DEVELOPED) $(ENGINE)
	$(BIN)/python -m tests.runtime.soak

# Byte code first, of sources changed since: the measurements are of what a user has from the second run on.
bench: $(DEVELOPED) $(ENGINE)
	@$(BIN)/python -m compileall -q compassc core runtime sim
	$(BIN)/python -m benchmarks

docs: $(DEVELOPED)
	$(BIN)/python -m compassc ops --write-docs docs/ops
	$(BIN)/python -m compassc.dsl.stubs
	$(BIN)/python -m compassc.reference.costs
	$(BIN)/python -m compassc.reference.primitives
	$(BIN)/python -m compassc layers --write-docs docs/layers
	$(BIN)/python -m compassc import --write-docs docs/onnx.md
	$(BIN)/python -m compassc import --framework tflite --write-docs docs/tflite.md
	$(BIN)/python -m compassc.quantizer.docs
	$(BIN)/python -m compassc.evaluation.functions

site: $(DEVELOPED)
	@$(BIN)/python -c 'import material' 2>/dev/null || $(BIN)/python $(PIP) install --editable '.[site]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet
	@echo "$(CURDIR)/build/site/index.html; with its search: $(BIN)/python -m http.server --directory build/site"

wheel:
	@rm -rf build/wheel && mkdir -p build/wheel
	@$(PYTHON) $(PIP) wheel --no-deps --wheel-dir build/wheel .
	$(PYTHON) tests/docs/wheel.py build/wheel/*.whl
	@mkdir -p dist && mv build/wheel/*.whl dist && ls dist/*.whl

lint: $(DEVELOPED)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy $(addprefix -p ,$(TYPED)) -m compassc.jupyter -m compassc.services -m compassc.__main__

format: $(DEVELOPED)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

setup: $(DEVELOPED) $(ENGINE)

# The last steps: byte code, as pip makes it for packages that are not editable; this also is the first interpreter start
# after the install, at which the clang wheel puts its programs in place.
$(INSTALLED): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.version_info < (3, 10) and sys.exit("Python 3.10 or newer is needed, PYTHON=... names one")'
	@echo "setting up $(VENV) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) >/dev/null || $(PYTHON) -m venv --without-pip $(VENV)
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) $(PIP) --python $(BIN)/python install pip
	@$(BIN)/python $(PIP) install --editable '.$(if $(CLANG),[$(CLANG)])'
	@$(BIN)/python -m compileall -q compassc core runtime sim
	@cd $(VENV) && rm -f $(UNUSED)
	@touch $@

# What tests and tools need beside.
$(DEVELOPED): $(INSTALLED)
	@echo "setting up what tests need ..."
	@$(BIN)/python $(PIP) install --editable '.[dev$(if $(CLANG),$(COMMA)$(CLANG))]'
	@touch $@

$(ENGINE): $(INSTALLED) $(wildcard sim/engine/* sim/compass_sim/build.py runtime/native/* runtime/include/* compassc/layers/float_loops.* compassc/pysim/loops.*)
	@$(BIN)/python -m compass_sim.build
	@$(BIN)/python -m compass_runtime.clibrary
	@$(BIN)/python -m compassc.layers.float_loops
	@$(BIN)/python -c 'from compassc.pysim import loops; raise SystemExit(loops.main())'
	@touch $@

clean:
	rm -rf build dist examples/build .pytest_cache .mypy_cache .ruff_cache .hypothesis $(ENGINE) sim/compass_sim/_bin \
	  runtime/compass_runtime/_lib compassc/targets/_lib
	find . -path ./$(VENV) -prune -o \( -name __pycache__ -o -name '*.compass' \) -type d -print0 | xargs -0 rm -rf
	find . -path ./$(VENV) -prune -o \( -name aipu.bin -o -name 'output*.npy' \) -type f -print0 | xargs -0 rm -f

distclean: clean
	rm -rf $(VENV)
