# Checks: what must hold of the product; its Makefile includes this. The tools under test/support do
# the work; each suite has one server, and one build serves them all.
TOOL  = PG_CONFIG='$(PG_CONFIG)' PULSE_BUILD='$(CURDIR)/build' $(SRC)/test/support
JOBS ?= $(shell nproc)
# For recipes that build: as parallel as was asked for, else as the machine can.
PARALLEL = $(if $(findstring -j,$(MAKEFLAGS)),,-j$(JOBS))

# PGXS has a rule for `check` that only prints that there are no checks. Make replaces a recipe with
# a warning, so ours is a prerequisite, and that of PGXS runs in a shell that does nothing.
check: all-suites ## packages, lint, one build, and every suite, with and without preloading
check: private SHELL = true
all-suites:
	+@BUILD='$(AGAIN)' JOBS=$(JOBS) $(TOOL)/check

# The demonstration has no use for the console, which is most of the compiler's work; a console that
# is there is installed with the rest, so that `make uninstall` still knows of its files.
demo: ## install what is missing for it, build, and show a crash being recovered
	@$(TOOL)/packages demo
	+$(AGAIN) $(PARALLEL) stage CONSOLE=$(if $(wildcard $(WORKER_BUILD)/console/pulse),yes,no)
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
# Slow to install and to compile, so not a part of check; each page says what it needs.
RECIPES = django go
check-recipes: stage ## docs/recipes for Django and Go, which need packages of theirs
	@$(TOOL)/packages recipes
	PULSE_RECIPES=1 PULSE_DOCS_SECONDS=600 PULSE_LABEL=recipes $(TOOL)/suite docs \
	  $(RECIPES:%=docs/recipes/%.md)
# Patroni, etcd and haproxy are packages of their own, and a machine is gone for as long as Patroni
# waits, so not a part of check.
check-ha: stage ## seven faults of three nodes under Patroni; FAULTS='switchover machine_gone', ROUNDS=5
	@$(TOOL)/packages ha
	PULSE_FAULTS='$(FAULTS)' PULSE_ROUNDS='$(ROUNDS)' PULSE_LABEL=ha $(TOOL)/suite e2e test/ha/faults.pl
# Citus is built from its source, which is not here. CITUS_SOURCE=citus-13.2.2.tar.xz, or its folder.
CITUS ?= $(SRC)/test/citus/*.pl
check-citus: stage ## a coordinator and two nodes of Citus; CITUS_SOURCE=archive, CITUS=test/citus/calls.pl
	$(TOOL)/suite citus $(CITUS)
# A worker is a program that keeps to docs/worker-protocol.md; check-e2e plays the rules against one.
WORKERS ?= $(notdir $(wildcard $(SRC)/test/protocol/workers/*))
check-protocol: stage ## each rule of the worker protocol against each worker; WORKERS='process library'
	@$(TOOL)/packages test
	$(PLAIN) $(CMAKE) -S $(SRC)/test/protocol/act/library -B build/protocol -DCMAKE_BUILD_TYPE=Release \
	  -DCMAKE_PREFIX_PATH='$(STAGE)$(PREFIX)' >/dev/null
	+$(PLAIN) $(CMAKE) --build build/protocol >/dev/null
	PULSE_WORKERS='$(WORKERS)' PULSE_FAULTS=1 PULSE_LABEL=protocol $(TOOL)/suite e2e test/e2e/protocol.pl
check-e2e: stage ## whole processes that are killed, cut off, promoted
	$(TOOL)/suite e2e

# Beside load, so a test whose outcome depends on who is faster shows it. N runs of all files and
# specs, or of those of FILES.
N ?= 5
check-flaky: stage ## end-to-end files and specs N times (5) beside load: which differ? FILES='…'
	$(TOOL)/flaky -n $(N) $(FILES)

# The server's own assertions in our code, and undefined behaviour as a crash: both end in the
# server's log as a signal. A copy of the sources, because a tree with objects hides VPATH's. The
# end-to-end tests of queues, limits, fairness, parents, counts and recovery run with the worker of
# the normal build, for six minutes on two busy cores; all takes fifteen.
ASSERTS = $(CURDIR)/build/asserts
ASSERTED_E2E = claim_contract counters depths fair levels limits parents parents_after_restart \
  prepared_after_restart queue_handover queues_after_restart rate_credit rate_wakes \
  server_restarted strict verify_under_load worker_killed
check-asserts: stage ## pgTAP, isolation and some of e2e with assertions and trapped undefined behaviour
	rm -rf $(ASSERTS) && mkdir -p $(ASSERTS)/build
	cp -R $(SRC)/Makefile $(SRC)/extension $(SRC)/sql $(ASSERTS)
	cp -R '$(STAGE)' $(ASSERTS)/build/stage
	find $(ASSERTS)/extension -name '*.o' -delete
	+$(MAKE) -C $(ASSERTS) $(PARALLEL) stage VPATH= WORKER=no PULSE_CXXFLAGS='-DUSE_ASSERT_CHECKING \
	  -DPULSE_IN_PLACE_FROM=2 -fsanitize=undefined -fno-sanitize=vptr -fsanitize-undefined-trap-on-error'
	PULSE_STAGE=$(ASSERTS)/build/stage PULSE_LABEL=asserts $(TOOL)/suite pgtap
	PULSE_STAGE=$(ASSERTS)/build/stage PULSE_LABEL=asserts $(TOOL)/suite isolation
	PULSE_STAGE=$(ASSERTS)/build/stage PULSE_LABEL=asserts PROVE_FLAGS=-j2 \
	  $(TOOL)/suite e2e $(ASSERTED_E2E:%=$(SRC)/test/e2e/%.pl)

# The C compiler links, so what needs the C++ runtime would fail when it is loaded, or first called.
check-symbols: all ## needs no C++ runtime and no later minor version, exports our names, all of a release's
	@$(TOOL)/symbols $(EXT).so
	@! nm -D --undefined-only $(EXT).so | grep -E ' (_Z|__cxa_|__gxx_)' | grep -v __cxa_finalize
	@! nm -D --defined-only $(EXT).so | grep -vE ' [VWw] ' | \
	  grep -vE ' (pulse_\w+|pg_finfo_pulse_\w+|Pg_magic_func|_PG_init|_ZNK?5pulse\w+)$$'
	@for name in $$(sed -n "s/.*'MODULE_PATHNAME', '\(\w*\)'.*/\1/p" $(addprefix $(SRC)/,$(DATA))); \
	  do nm -D --defined-only $(EXT).so | grep -q " $$name$$" || \
	  { echo "an older version calls $$name, which is gone"; exit 1; }; done

# Make uninstall is tried on a folder of its own; there the library's folder is new too.
TRIED = $(CURDIR)/build/uninstall
check-uninstall: stage ## make uninstall leaves no file and no folder of what make install made
	@rm -rf '$(TRIED)'
	+@$(AGAIN) install DESTDIR='$(TRIED)' >/dev/null
	+@$(AGAIN) uninstall DESTDIR='$(TRIED)' >/dev/null
	@! find '$(TRIED)' ! -type d | grep .
	@! find '$(TRIED)$(PREFIX)' -mindepth 1 ! -path '$(TRIED)$(pkglibdir)' | grep .

COMPILE = $(CXX) -O2 $(PG_CXXFLAGS) -D_GNU_SOURCE -I$(SRC)/extension \
  -DPULSE_VERSION="$(EXTVERSION)"
check-versions: $(if $(HEADERS),,stage) ## the suites on every other server here, or on SERVERS='…'
	@COMPILE='$(COMPILE)' JOBS=$(JOBS) SERVERS='$(SERVERS)' HEADERS='$(HEADERS)' \
	  SUITES='$(SUITES)' $(TOOL)/versions

# Worker, minder and console are processes of their own, so sanitizers need nothing from the server.
# Of the end-to-end tests: networks, load, odd surroundings, HTTP. A finding in a process whose exit
# no test looks at stands in a report.
SANITIZED_E2E = api_fuzz connection_terminated console drain environment flaky_network http \
  hostile_tasks logs lost_reply minder output pooler processes release same_host sql_tasks steer \
  urgent_jobs
check-asan: SANITIZE = address,undefined
check-tsan: SANITIZE = thread
check-asan check-tsan: REPORT = $(CURDIR)/build/e2e-$*/finding
check-asan: ## worker, minder, console under AddressSanitizer and UBSan: unit and end-to-end tests
check-tsan: ## the same under ThreadSanitizer
check-asan check-tsan: check-%: stage
	+$(AGAIN) $(PARALLEL) worker-build WORKER_BUILD=build/$* WORKER_TESTS=ON \
	  WORKER_SANITIZE=$(SANITIZE)
	rm -rf build/$*/stage && cp -R '$(STAGE)' build/$*/stage
	DESTDIR='$(CURDIR)/build/$*/stage' $(CMAKE) --install build/$* >/dev/null
	PULSE_WORKER_BUILD=$(CURDIR)/build/$* PULSE_LABEL=$* $(TOOL)/suite worker
	$(TOOL)/cluster run smoke-$* -- $(SRC)/test/support/smoke $(CURDIR)/build/$*/pulse-worker
	PULSE_STAGE=$(CURDIR)/build/$*/stage PULSE_LABEL=$* PROVE_FLAGS=-j2 \
	  ASAN_OPTIONS=log_path=$(REPORT) UBSAN_OPTIONS=print_stacktrace=1:log_path=$(REPORT) \
	  TSAN_OPTIONS=log_path=$(REPORT) \
	  $(TOOL)/suite e2e $(SANITIZED_E2E:%=$(SRC)/test/e2e/%.pl)
	@! cat $(REPORT).* 2>/dev/null | grep .

# Valgrind sees what sanitizers do not: what was never written, in libraries too. Of tests of tasks
# only those that execute nothing.
VALGRIND = valgrind -q --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite \
  --show-leak-kinds=definite --child-silent-after-fork=yes
PURE_TASK_TESTS = StderrTail*:ExitStatus*:TaskEnvironment*:TaskOutput*
check-valgrind: stage ## unit tests, and jobs that are functions, under valgrind
	@$(TOOL)/packages valgrind
	+$(AGAIN) $(PARALLEL) worker-build WORKER_TESTS=ON
	$(VALGRIND) $(WORKER_BUILD)/test/pulse-worker-tests --gtest_brief=1
	$(VALGRIND) $(WORKER_BUILD)/test/pulse-task-tests --gtest_brief=1 \
	  --gtest_filter='$(PURE_TASK_TESTS)'
	$(VALGRIND) $(WORKER_BUILD)/test/pulse-fuzz-tests --gtest_brief=1
	$(TOOL)/cluster run smoke-valgrind -- $(SRC)/test/support/smoke_functions $(VALGRIND) \
	  $(CURDIR)/$(WORKER_BUILD)/pulse-worker

check-e2e-long: stage ## hundreds of escapes, gigabytes of output, minutes of maintenance, where check-e2e has a few
	PULSE_LONG=1 PULSE_LABEL=long $(TOOL)/suite e2e test/e2e/escape.pl test/e2e/hostile_tasks.pl \
	    test/e2e/maintenance_of_every_table.pl \
	    test/e2e/node_prisma.pl

# Tests of which check-e2e runs a part, at full size.
SCALE_ids_after_failover = PULSE_FAILOVERS=50
SCALE_async_tokens  = PULSE_CRASHES=67
SCALE_limits        = PULSE_QUEUES=10000 PULSE_JOBS=34000
SCALE_strict        = PULSE_QUEUES=10000 PULSE_JOBS=20
SCALE_fair          = PULSE_QUEUES=1000 PULSE_BACKLOG=1000000
SCALE_levels        = PULSE_JOBS=20000
SCALE_depths_at_scale = PULSE_JOBS=5000000 PULSE_SECONDS=600
SCALE_explain       = PULSE_STATES=100000
SCALE_claim_contract = PULSE_STATES=20000
SCALE_parents       = PULSE_JOBS=67000 PULSE_FAN_IN=100000 PULSE_KILLS=20
SCALE_schedule_year = PULSE_SCHEDULES=10000 PULSE_STEPS=365
SCALE_wait_for_end  = PULSE_WAIT_CALLS=100000 PULSE_WAIT_SESSIONS=32
SCALE_operations    = PULSE_OPERATION_JOBS=100000
SCALE_undo          = PULSE_FLOWS=1000
SCALE_many_keys     = PULSE_KEYS=4000 PULSE_ROUNDS=20 PULSE_SESSIONS=90
SCALE_page_hostile  = PULSE_HOSTILE=1
SCALE_pid1          = PULSE_JOBS=1000
SCALE_thousand_tasks = PULSE_TASKS=1000
SCALE_kinds_of_tasks = PULSE_JOBS=1000
SCALE_fleet_restarted = PULSE_RESTARTS=20
SCALE_api_fuzz      = PULSE_REQUESTS=1000000
SCALE_random_calls  = PULSE_CALLS=100000
check-scale: $(patsubst SCALE_%,scale-%,$(filter SCALE_%,$(.VARIABLES))) ## promises at the sizes of large installations; hours
scale-%: stage
	env PG_TEST_TIMEOUT_DEFAULT=3600 PULSE_LABEL=scale $(SCALE_$*) \
	  $(TOOL)/suite e2e test/e2e/$*.pl

# What a user of PGXN gets is the archive alone, and the client's manner to build it. Without Citus
# the server creates no extension for Citus, whose files must be there.
DIST = $(CURDIR)/build/dist
CREATED = $(filter-out $(CITUS_EXT),$(notdir $(EXTENSION)))
check-dist: dist ## the release archive, installed by pgxn's client and created in a server
	@$(TOOL)/packages dist
	rm -rf '$(DIST)'
	env -u MAKEFLAGS -u VPATH WORKER=no DESTDIR='$(DIST)' pgxn install --nosudo \
	  --pg_config '$(shell command -v $(PG_CONFIG))' 'build/$(EXT)-$(EXTVERSION).zip' \
	  >build/pgxn.log 2>&1 || { tail -20 build/pgxn.log; exit 1; }
	PULSE_STAGE='$(DIST)' $(TOOL)/cluster run dist -- psql -Xq -v ON_ERROR_STOP=1 \
	  $(patsubst %,-c 'CREATE EXTENSION % CASCADE',$(CREATED))
	ls $(addprefix '$(DIST)$(datadir)/extension/$(CITUS_EXT)',.control --$(EXTVERSION).sql) >/dev/null

# Fetches a Debian system into the build, so `make check` leaves it out.
check-deb: export DEBEMAIL ?= packager@example.org
check-deb: ## the packages of make deb: lintian, install, use, upgrade, remove, purge
	@$(TOOL)/packages check-deb
	+@$(AGAIN) deb >build/deb.log 2>&1 || { tail -20 build/deb.log; exit 1; }
	@$(TOOL)/../deb/run

screenshots: stage ## write the pictures of docs/console.md anew, to be looked at
	@$(TOOL)/packages screenshots
	$(TOOL)/suite e2e test/screenshots/take.pl
	for picture in build/e2e/tmp_check/*.png; do optipng -quiet -o2 "$$picture" && \
	  cp "$$picture" $(SRC)/docs/pictures/; done

fuzz: ## 10 million fuzzed inputs (FUZZ_INPUTS=…) for the worker's parsers; needs clang
	@$(TOOL)/packages fuzz
	$(TOOL)/../fuzz/run $(FUZZ_INPUTS)

check-model: ## models of queues and limits: all states of two claimers and a crash
	@$(TOOL)/packages model
	$(TOOL)/../model/run

check-long: ## all that takes long: the checks above, fuzzing, clang-tidy, mutants
	+$(AGAIN) check-asserts
	+$(AGAIN) check-versions
	+$(AGAIN) check-dist
	+$(AGAIN) check-deb
	+$(AGAIN) check-recipes
	+$(AGAIN) check-ha ROUNDS=5
	+$(AGAIN) check-asan
	+$(AGAIN) check-tsan
	+$(AGAIN) check-valgrind
	+$(AGAIN) check-e2e-long
	+$(AGAIN) check-protocol
	+$(AGAIN) fuzz
	@$(TOOL)/packages model
	$(TOOL)/../model/run --long
	+$(AGAIN) tidy
	+$(AGAIN) mutants

mutants: stage ## remove each guard in turn; a named test must turn red
	$(TOOL)/../mutants/run
bench: stage ## measure speed against floors: WORKLOAD=drain for one, LONG=1 for all there is
	@$(TOOL)/packages bench
	$(TOOL)/../bench/run workloads $(if $(LONG),--long) $(WORKLOAD)

lint: ## format, budgets, versions, banned words; each finding says what to do
	@$(TOOL)/lint
format: ## format the C++ sources in place
	cd $(SRC) && clang-format -i $$(find extension base worker console test -name '*.?pp')
# It reads each file by itself, so it also tells which one lacks an include.
tidy: ## let clang-tidy look for mistakes
	+$(AGAIN) $(PARALLEL) worker-build WORKER_BUILD=build/tidy UNITY=off
	clang-tidy --quiet $(SOURCES) -- $(filter -std=% -f%,$(PG_CXXFLAGS)) \
	  -Wno-register $(PG_CPPFLAGS)
	clang-tidy --quiet -p build/tidy $(shell find $(SRC)/base $(SRC)/worker/src $(SRC)/console/src -name '*.cpp')
packages: ## install the Debian packages that are missing to build, or FOR=demo, FOR=test, FOR=deb …
	@$(TOOL)/packages $(or $(FOR),build)

ifneq ($(wildcard $(PGXS)),)
installcheck: installcheck-pgtap
clean: stop-clusters
endif
installcheck-pgtap:
	$(TOOL)/pgtap
stop-clusters:
	$(TOOL)/cluster stop --all

.PHONY: check all-suites demo check-pgtap check-isolation check-nopreload check-worker check-cost \
  check-deb check-recipes check-ha check-e2e check-protocol check-asserts check-symbols check-uninstall check-versions check-asan check-tsan \
  check-valgrind check-flaky check-e2e-long check-scale check-model check-long fuzz screenshots mutants \
  bench lint format tidy packages installcheck-pgtap stop-clusters
