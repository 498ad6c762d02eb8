# pg_pulse: the extension (PGXS) and its worker (CMake). `make help` lists the targets.

# Names and version. The control file is the version of record.
EXT        = pg_pulse
SRC       := $(or $(VPATH),.)
EXTVERSION := $(shell sed -n "s/^default_version = '\(.*\)'/\1/p" $(SRC)/extension/$(EXT).control)

# What is built.
EXTENSION  = extension/$(EXT)
MODULE_big = $(EXT)
SOURCES    = $(wildcard $(SRC)/extension/*.cpp $(SRC)/extension/*/*.cpp)
OBJS       = $(patsubst $(SRC)/%.cpp,%.o,$(sort $(SOURCES)))
OBJECT_FOLDERS = $(sort $(patsubst %/,$(CURDIR)/%,$(dir $(OBJS))))
HPP        = $(wildcard $(SRC)/extension/*.hpp $(SRC)/extension/*/*.hpp)
DATA       = $(patsubst $(SRC)/%,%,$(wildcard $(SRC)/sql/releases/*.sql))
INSTALL_SQL = build/$(EXT)--$(EXTVERSION).sql
UPGRADE_SQL = $(patsubst $(SRC)/sql/upgrade/%,build/$(EXT)--%,$(wildcard \
  $(SRC)/sql/upgrade/*--$(EXTVERSION).sql))
DATA_built = $(INSTALL_SQL) $(UPGRADE_SQL)

# SQL parts in load order: what a part creates may use only what stands above it. Structure is created
# once; functions use CREATE OR REPLACE, so that an upgrade replays them. A listed part that is
# missing and a part that no list names fail the build.
SQL_STRUCTURE  = preamble types tables
# Foundations
SQL_FUNCTIONS  = settings clock installation
# Tasks and queues
SQL_FUNCTIONS += task queue promote
# Producers
SQL_FUNCTIONS += add cancel
# Workers
SQL_FUNCTIONS += worker claim fresh_claim heartbeat progress wait attempt finish fence handler
# Recovery
SQL_FUNCTIONS += lost sweep host
# Operators
SQL_FUNCTIONS += retry operators steer prune tick cron
# Monitoring
SQL_FUNCTIONS += stats monitor verify
# Guards
SQL_FUNCTIONS += roles drop grants

# What `make installcheck` runs besides pgTAP, on the server that PGHOST and PGPORT name.
ISOLATION     := $(sort $(basename $(notdir $(wildcard $(SRC)/test/isolation/specs/*.spec))))
ISOLATION_OPTS = --inputdir=$(SRC)/test/isolation --load-extension=$(EXT)

# Flags.
#   -isystem           the server's headers come first and without noise under -Wextra
#   -fno-exceptions, -fno-rtti, -fno-threadsafe-statics   nothing may need the C++ runtime: an
#                      exception must never meet the server's longjmp, and the C compiler links
#   -Wno-register      PostgreSQL 15's headers still say `register`
#   with_llvm          off: bitcode helps to inline functions into JIT-compiled expressions, where no
#                      function of a queue occurs; it would double the build and need clang
override with_llvm = no
PG_CPPFLAGS = -isystem $(includedir_server) -I$(SRC)/extension -DPULSE_VERSION='"$(EXTVERSION)"'
PG_CXXFLAGS = -std=c++17 -fno-exceptions -fno-rtti -fno-threadsafe-statics -Wno-register \
              -Wall -Wextra $(PULSE_CXXFLAGS)
EXTRA_CLEAN = build output_iso

# A make of its own with the same makefile: for a goal that needs other variables or a fresh look.
AGAIN = $(MAKE) -f $(abspath $(firstword $(MAKEFILE_LIST)))

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs 2>/dev/null)
ifeq ($(wildcard $(PGXS)),)
.DEFAULT:
	@echo '$@: $(PG_CONFIG) leads to no server with its development files: try `make packages`' >&2
	@exit 1
else
include $(PGXS)

# Generated files. PGXS tracks no headers, and a VPATH build has no folders for objects yet.
$(OBJS): $(HPP) $(SRC)/Makefile $(SRC)/extension/$(EXT).control | $(OBJECT_FOLDERS)
$(OBJECT_FOLDERS):
	mkdir -p $@

STRUCTURE = $(SQL_STRUCTURE:%=$(SRC)/sql/%.sql)
FUNCTIONS = $(SQL_FUNCTIONS:%=$(SRC)/sql/%.sql)
UNLISTED  = $(filter-out $(STRUCTURE) $(FUNCTIONS),$(wildcard $(SRC)/sql/*.sql))
$(DATA_built): $(STRUCTURE) $(FUNCTIONS) $(UNLISTED) $(SRC)/Makefile \
  $(SRC)/extension/$(EXT).control
$(INSTALL_SQL): $(SRC)/sql/assemble.awk
	$(if $(UNLISTED),$(error no list of SQL parts in the Makefile names $(UNLISTED)))
	@mkdir -p $(@D)
	awk -f $(SRC)/sql/assemble.awk $(STRUCTURE) $(FUNCTIONS) >$@
$(UPGRADE_SQL): build/$(EXT)--%--$(EXTVERSION).sql: $(SRC)/sql/upgrade.awk \
  $(SRC)/sql/upgrade/begin.sql $(SRC)/sql/upgrade/%--$(EXTVERSION).sql \
  $(SRC)/sql/releases/$(EXT)--%.sql
	@mkdir -p $(@D)
	awk -v VERSION=$(EXTVERSION) -f $< role=old $(SRC)/sql/releases/$(EXT)--$*.sql \
	  role=structure $(STRUCTURE) role=print $(SRC)/sql/upgrade/begin.sql \
	  $(SRC)/sql/upgrade/$*--$(EXTVERSION).sql role=functions $(FUNCTIONS) >$@
.DELETE_ON_ERROR:

# The worker. CMake gets neither the extension's flags, which PGXS puts into variables that make
# exports, nor this make's overrides; WORKER_CXXFLAGS reaches it.
ifneq ($(WORKER),no)
all: worker-build
install: worker-install
uninstall: worker-uninstall
endif
WORKER_BUILD = build/worker
CMAKE ?= cmake
# Tests are built once a goal has asked for them in this build tree.
WORKER_TESTS ?= $(if $(wildcard $(WORKER_BUILD)/CMakeCache.txt),,OFF)
PLAIN = env -u VPATH -u CFLAGS -u CPPFLAGS -u CXXFLAGS -u LDFLAGS MAKEFLAGS="$${MAKEFLAGS%% -- *}"

worker-build:
	$(PLAIN) $(CMAKE) -S $(SRC)/worker -B $(WORKER_BUILD) -DCMAKE_BUILD_TYPE=Release \
	  -DCMAKE_EXPORT_COMPILE_COMMANDS=ON \
	  -DCMAKE_INSTALL_PREFIX='$(patsubst %/bin,%,$(bindir))' -DCMAKE_INSTALL_BINDIR='$(bindir)' \
	  -DPULSE_SANITIZE='$(WORKER_SANITIZE)' -DCMAKE_CXX_FLAGS='$(WORKER_CXXFLAGS)' \
	  $(addprefix -DBUILD_TESTING=,$(WORKER_TESTS))
	+$(PLAIN) $(CMAKE) --build $(WORKER_BUILD)
worker-install: worker-build
	DESTDIR='$(DESTDIR)' $(CMAKE) --install $(WORKER_BUILD)
worker-uninstall:
	sed "s:^:$(DESTDIR):" $(WORKER_BUILD)/install_manifest.txt | xargs -d '\n' rm -f

stage: all ## install into build/stage, where the tests look
	+$(AGAIN) install DESTDIR='$(STAGE)'

# The C compiler links, so what needs the C++ runtime would fail when it is loaded, or first called.
check-symbols: all ## no C++ runtime is needed, no name but ours exported, none of a release gone
	@! nm -D --undefined-only $(EXT).so | grep -E ' (_Z|__cxa_|__gxx_)' | grep -v __cxa_finalize
	@! nm -D --defined-only $(EXT).so | grep -vE ' [VWw] ' | \
	  grep -vE ' (pulse_\w+|pg_finfo_pulse_\w+|Pg_magic_func|_PG_init|_ZNK?5pulse\w+)$$'
	@for name in $$(sed -n "s/.*'MODULE_PATHNAME', '\(\w*\)'.*/\1/p" $(addprefix $(SRC)/,$(DATA))); \
	  do nm -D --defined-only $(EXT).so | grep -q " $$name$$" || \
	  { echo "an older version calls $$name, which is gone"; exit 1; }; done

tidy: worker-build ## let clang-tidy look for mistakes
	clang-tidy --quiet $(SOURCES) -- $(filter -std=% -f%,$(PG_CXXFLAGS)) \
	  -Wno-register $(PG_CPPFLAGS)
	clang-tidy --quiet -p $(WORKER_BUILD) $(shell find $(SRC)/worker/src -name '*.cpp')

installcheck: installcheck-pgtap
installcheck-pgtap:
	$(TOOL)/pgtap
clean: stop-clusters

.PHONY: worker-build worker-install worker-uninstall stage check-symbols tidy installcheck-pgtap
endif

# Checks. The tools under test/support do the work; each suite has one server, and one build serves
# them all.
STAGE = $(CURDIR)/build/stage
TOOL  = PG_CONFIG='$(PG_CONFIG)' PULSE_BUILD='$(CURDIR)/build' $(SRC)/test/support
JOBS ?= $(shell nproc)
# For recipes that build: as parallel as was asked for, else as the machine can.
PARALLEL = $(if $(findstring -j,$(MAKEFLAGS)),,-j$(JOBS))

# PGXS has a rule for `check` that only prints that there are no checks. A second recipe would replace
# it with a warning, so ours is a prerequisite, and that of PGXS runs in a shell that does nothing.
check: all-suites ## packages, lint, one build, and every suite, with and without preloading
check: private SHELL = true
all-suites:
	+@BUILD='$(AGAIN)' JOBS=$(JOBS) $(TOOL)/check

demo: packages ## install what is missing, build, and show a crash being recovered
	+$(AGAIN) $(PARALLEL) stage
	$(TOOL)/cluster run demo --fsync --set pulse.databases=demo -- $(SRC)/test/demo/run

check-pgtap: ## each function's contract
check-isolation: ## each pair of conflicting operations
check-pgtap check-isolation: check-%: stage
	$(TOOL)/suite $*
check-nopreload: stage ## pgTAP and isolation without shared_preload_libraries
	$(TOOL)/suite pgtap --no-preload
	$(TOOL)/suite isolation --no-preload
check-worker: ## the worker's unit tests
	+$(AGAIN) $(PARALLEL) worker-build WORKER_TESTS=ON
	$(TOOL)/suite worker
check-cost: stage ## WAL, buffers, statements and plans within their budgets (test/cost/budgets)
	$(TOOL)/suite cost
check-e2e: stage ## whole processes that are killed, cut off, promoted
	$(TOOL)/suite e2e

# The server's own assertions in our code, and undefined behaviour as a crash: both end in the
# server's log as a signal. A copy of the sources, because a tree with objects hides VPATH's.
ASSERTS = $(CURDIR)/build/asserts
check-asserts: ## pgTAP and isolation on a build with assertions and trapped undefined behaviour
	rm -rf $(ASSERTS) && mkdir -p $(ASSERTS)
	cp -R $(SRC)/Makefile $(SRC)/extension $(SRC)/sql $(ASSERTS)
	find $(ASSERTS)/extension -name '*.o' -delete
	+$(MAKE) -C $(ASSERTS) $(PARALLEL) stage VPATH= WORKER=no PULSE_CXXFLAGS='-DUSE_ASSERT_CHECKING \
	  -DPULSE_FRESH_FROM=2 -fsanitize=undefined -fno-sanitize=vptr -fsanitize-undefined-trap-on-error'
	PULSE_STAGE=$(ASSERTS)/build/stage PULSE_LABEL=asserts $(TOOL)/suite pgtap
	PULSE_STAGE=$(ASSERTS)/build/stage PULSE_LABEL=asserts $(TOOL)/suite isolation

check-versions: ## compile against the headers of every server here, or of HEADERS='…'
	@COMPILE='$(CXX) -O2 $(PG_CXXFLAGS) -D_GNU_SOURCE -I$(SRC)/extension -DPULSE_VERSION="$(EXTVERSION)"' \
	  $(TOOL)/versions $(HEADERS)

# The worker is a process of its own, so sanitizers need nothing from the server.
check-asan: SANITIZE = address,undefined
check-tsan: SANITIZE = thread
check-asan check-tsan: export UBSAN_OPTIONS = halt_on_error=1:print_stacktrace=1
check-asan check-tsan: export TSAN_OPTIONS = halt_on_error=1
check-asan: ## the worker under AddressSanitizer and UBSan: unit tests, and jobs of each outcome
check-tsan: ## the same under ThreadSanitizer
check-asan check-tsan: check-%: stage
	+$(AGAIN) $(PARALLEL) worker-build WORKER_BUILD=build/$* WORKER_TESTS=ON \
	  WORKER_SANITIZE=$(SANITIZE)
	PULSE_WORKER_BUILD=$(CURDIR)/build/$* PULSE_LABEL=$* $(TOOL)/suite worker
	$(TOOL)/cluster run smoke-$* -- $(SRC)/test/support/smoke $(CURDIR)/build/$*/pulse-worker

# Valgrind sees what sanitizers do not: what was never written, in libraries too. Debian's knows no
# openat2, without which nothing of a tasks folder is executed, so of those tests only the pure ones.
VALGRIND = valgrind -q --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite \
  --show-leak-kinds=definite --child-silent-after-fork=yes
PURE_TASK_TESTS = ErrorTail*:TaskEnd*:TaskEnvironment*:TaskOutput*
check-valgrind: stage ## unit tests, and jobs that are functions, under valgrind
	@$(TOOL)/packages --with valgrind
	+$(AGAIN) $(PARALLEL) worker-build WORKER_TESTS=ON
	$(VALGRIND) $(WORKER_BUILD)/test/pulse-worker-tests --gtest_brief=1
	$(VALGRIND) $(WORKER_BUILD)/test/pulse-task-tests --gtest_brief=1 \
	  --gtest_filter='$(PURE_TASK_TESTS)'
	$(VALGRIND) $(WORKER_BUILD)/test/pulse-fuzz-tests --gtest_brief=1
	$(TOOL)/cluster run smoke-valgrind -- $(SRC)/test/support/smoke_functions $(VALGRIND) \
	  $(CURDIR)/$(WORKER_BUILD)/pulse-worker

check-e2e-long: stage ## hundreds of escapes and gigabytes of output, where check-e2e has a few
	PULSE_LONG=1 PULSE_LABEL=long $(TOOL)/suite e2e test/e2e/escape.pl test/e2e/hostile_tasks.pl

fuzz: packages-fuzz ## 10 million fuzzed inputs (FUZZ_INPUTS=…) for the worker's parsers; needs clang
	$(TOOL)/../fuzz/run $(FUZZ_INPUTS)
packages-fuzz:
	@$(TOOL)/packages --with fuzz

check-long: ## all that takes long: the checks above, fuzzing, clang-tidy, mutants
	+$(AGAIN) check-asserts
	+$(AGAIN) check-versions
	+$(AGAIN) check-asan
	+$(AGAIN) check-tsan
	+$(AGAIN) check-valgrind
	+$(AGAIN) check-e2e-long
	+$(AGAIN) fuzz
	+$(AGAIN) tidy
	+$(AGAIN) mutants

mutants: stage ## remove each guard in turn; a named test must turn red
	$(TOOL)/../mutants/run
bench: stage ## measure speed against floors: WORKLOAD=drain for one, LONG=1 for all there is
	@$(TOOL)/packages --with bench
	$(TOOL)/../bench/run workloads $(if $(LONG),--long) $(WORKLOAD)

lint: ## format, budgets, versions, banned words; each finding says what to do
	@$(TOOL)/lint
format: ## format the C++ sources in place
	cd $(SRC) && clang-format -i $$(find extension worker test -name '*.?pp')
packages: ## install the Debian packages that are missing
	@$(TOOL)/packages
stop-clusters:
	$(TOOL)/cluster stop --all
dist: ## the release archive, from the last commit
	mkdir -p build
	git -C $(SRC) archive --prefix=$(EXT)-$(EXTVERSION)/ \
	  --output='$(CURDIR)/build/$(EXT)-$(EXTVERSION).zip' HEAD

help: ## this list
	@echo 'make [all]           build the extension and the worker (WORKER=no: without)'
	@echo 'make install         install both; DESTDIR and PG_CONFIG are honoured'
	@echo 'make installcheck    pgTAP and isolation tests on the server of PGHOST and PGPORT'
	@echo 'make clean           remove what was built, and stop servers of this tree'
	@awk -F ':.*## ' '/^[a-z0-9-]*:.*## / { printf "make %-15s %s\n", $$1, $$2 }' $(SRC)/Makefile

.DEFAULT_GOAL := all
.PHONY: check all-suites demo check-pgtap check-isolation check-nopreload check-worker check-cost \
  check-e2e check-asserts check-versions check-asan check-tsan check-valgrind check-e2e-long \
  check-long fuzz packages-fuzz mutants bench lint format packages stop-clusters dist help
