# pg_pulse: the extension (PGXS) and its worker (CMake). `make help` lists the targets.

# Names and version. The control file is the version of record.
EXT        = pg_pulse
TAP        = pg_pulse_tap
GRAPHILE   = pg_pulse_graphile
CITUS_EXT  = pg_pulse_citus
SRC       := $(or $(VPATH),.)
EXTVERSION := $(shell sed -n "s/^default_version = '\(.*\)'/\1/p" $(SRC)/extension/$(EXT).control)

# What is built.
EXTENSION  = $(addprefix extension/,$(EXT) $(TAP) $(GRAPHILE) $(CITUS_EXT))
MODULE_big = $(EXT)
SOURCES    = $(wildcard $(SRC)/extension/*.cpp $(SRC)/extension/*/*.cpp)
OBJS       = $(patsubst $(SRC)/%.cpp,%.o,$(sort $(SOURCES)))
OBJECT_FOLDERS = $(sort $(patsubst %/,$(CURDIR)/%,$(dir $(OBJS))))
HPP        = $(wildcard $(SRC)/extension/*.hpp $(SRC)/extension/*/*.hpp)
DATA       = $(patsubst $(SRC)/%,%,$(wildcard $(SRC)/sql/releases/*.sql))
INSTALL_SQL = build/$(EXT)--$(EXTVERSION).sql
UPGRADE_BEGIN = $(addprefix $(SRC)/sql/,upgrade/begin.sql upgrade/row_types.sql structure/library.sql upgrade/locks.sql)
UPGRADE_SQL = $(patsubst $(SRC)/sql/upgrade/%,build/$(EXT)--%,$(wildcard \
  $(SRC)/sql/upgrade/*--$(EXTVERSION).sql))
TAP_SQL    = build/$(TAP)--$(EXTVERSION).sql
GRAPHILE_SQL = build/$(GRAPHILE)--$(EXTVERSION).sql
CITUS_SQL  = build/$(CITUS_EXT)--$(EXTVERSION).sql
DATA_built = $(INSTALL_SQL) $(UPGRADE_SQL) $(TAP_SQL) $(GRAPHILE_SQL) $(CITUS_SQL)

# SQL parts in load order: a part uses only what stands above it when it is created. Structure is
# created once; functions use CREATE OR REPLACE, so that an upgrade replays them. Tables with a part of
# their own are new in this version, and an upgrade creates them too. A listed part
# that is missing and a part that no list names fail the build.
SQL_STRUCTURE  = structure/preamble structure/library structure/types structure/tables
SQL_STRUCTURE += $(SQL_NEW_TABLES)
SQL_NEW_TABLES = structure/flow_tables structure/operation_tables structure/counter_tables
SQL_NEW_TABLES += structure/depth_tables structure/key_tables structure/id_tables
SQL_NEW_TABLES += structure/idempotency_tables structure/once_tables
# Foundations
SQL_FUNCTIONS  = structure/table_comments structure/settings structure/clock structure/shard
SQL_FUNCTIONS += structure/ids structure/installation
# Tasks and queues
SQL_FUNCTIONS += job/task queue/promote flow/wait_for_parents flow/resolve_waits queue/level
SQL_FUNCTIONS += queue/rate queue/strict queue/fair queue/pause queue/set_queue
# Producers
SQL_FUNCTIONS += job/producer job/key job/add job/add_request job/add_once job/cancel job/dead_letter
# Callers
SQL_FUNCTIONS += job/results
# Jobs after jobs
SQL_FUNCTIONS += flow/add_after flow/order flow/add_flow
# Workers
SQL_FUNCTIONS += worker/register worker/claim worker/in_place_claim worker/heartbeat worker/progress
SQL_FUNCTIONS += worker/wait worker/attempt worker/finish worker/fence worker/handler
# Recovery
SQL_FUNCTIONS += recovery/tables recovery/lost recovery/returned recovery/expire recovery/undecided
SQL_FUNCTIONS += recovery/recover recovery/after_recovery recovery/sweep recovery/host_check
# Schedules
SQL_FUNCTIONS += schedule/job schedule/settle schedule/rule schedule/schedule schedule/crontab
# Operators
SQL_FUNCTIONS += operator/retry operator/change_jobs operator/worker_control operator/prune
SQL_FUNCTIONS += recovery/tick operator/cron operator/graphile
# Monitoring
SQL_FUNCTIONS += monitor/depths monitor/due monitor/stats monitor/fleet monitor/views monitor/ended
SQL_FUNCTIONS += explain/promotion explain/parked monitor/queue_reasons monitor/queue_status
SQL_FUNCTIONS += explain/explain explain/job explain/task
SQL_FUNCTIONS += monitor/verify monitor/counters monitor/uncounted monitor/overview monitor/list
SQL_FUNCTIONS += monitor/list_failures monitor/count_jobs monitor/list_flows
SQL_FUNCTIONS += monitor/list_unique_keys monitor/backlog
# Operations on many jobs
SQL_FUNCTIONS += operator/operation operator/operation_step operator/operation_undo
SQL_FUNCTIONS += operator/operation_run
# Guards
SQL_FUNCTIONS += guard/roles guard/role_findings guard/horizon_findings guard/server_findings
SQL_FUNCTIONS += guard/failover_findings guard/waiting_findings guard/doctor guard/drop_guard guard/grants

# What begins the extensions over pg_pulse.
SQL_COMPANION = companion
# The extension for pgTAP suites: its parts in load order.
SQL_TAP = preamble test time workers run jobs enqueued ends schedules grants
# The extension for applications of Graphile Worker.
SQL_GRAPHILE = preamble views functions guards grants
# The extension for clusters of Citus.
SQL_CITUS = preamble call keyed schedule keyed_schedule nodes colocate grants

# What `make installcheck` runs besides pgTAP, on the server that PGHOST and PGPORT name.
ISOLATION     := $(sort $(basename $(notdir $(wildcard $(SRC)/test/isolation/specs/*.spec))))
ISOLATION_OPTS = --inputdir=$(SRC)/test/isolation --load-extension=$(EXT)

# Flags.
#   -isystem           the server's headers come first and without noise under -Wextra
#   -fno-exceptions, -fno-rtti, -fno-threadsafe-statics   nothing may need the C++ runtime: an
#                      exception must never meet the server's longjmp, and the C compiler links
#   -fvisibility=hidden   calls within the library are direct; see extension/server/postgres.hpp
#   -Wno-register      PostgreSQL 15's headers still say `register`
#   with_llvm          off: bitcode helps to inline functions into JIT-compiled expressions, where no
#                      function of a queue occurs; it would double the build and need clang
override with_llvm = no
PG_CPPFLAGS = -isystem $(includedir_server) -I$(SRC)/extension -DPULSE_VERSION='"$(EXTVERSION)"'
PG_CXXFLAGS = -std=c++17 -fno-exceptions -fno-rtti -fno-threadsafe-statics -fvisibility=hidden \
              -Wno-register -Wall -Wextra $(PULSE_CXXFLAGS)
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

# Through VPATH make finds what an earlier build left in the sources, and builds nothing here.
LEFT = $(firstword $(wildcard $(addprefix $(SRC)/,$(MODULE_big).so $(OBJS))))
$(if $(filter-out $(CURDIR),$(realpath $(SRC))),$(if $(LEFT),$(error $(SRC) was built in place \
and has $(LEFT), which would be taken for a part of this build: type make -C $(SRC) clean)))

# Generated files. PGXS tracks no headers, and a VPATH build has no folders for objects yet.
$(OBJS): $(HPP) $(SRC)/Makefile $(SRC)/extension/$(EXT).control | $(OBJECT_FOLDERS)
$(OBJECT_FOLDERS):
	mkdir -p $@

STRUCTURE = $(SQL_STRUCTURE:%=$(SRC)/sql/%.sql)
FUNCTIONS = $(SQL_FUNCTIONS:%=$(SRC)/sql/%.sql)
COMPANION = $(SQL_COMPANION:%=$(SRC)/sql/%.sql)
TAP_PARTS = $(COMPANION) $(SQL_TAP:%=$(SRC)/sql/tap/%.sql)
GRAPHILE_PARTS = $(COMPANION) $(SQL_GRAPHILE:%=$(SRC)/sql/graphile/%.sql)
CITUS_PARTS = $(COMPANION) $(SQL_CITUS:%=$(SRC)/sql/citus/%.sql)
PARTS     = $(STRUCTURE) $(FUNCTIONS) $(TAP_PARTS) $(GRAPHILE_PARTS) $(CITUS_PARTS)
UNLISTED  = $(filter-out $(PARTS) $(SRC)/sql/releases/% $(SRC)/sql/upgrade/%,\
  $(wildcard $(addprefix $(SRC)/sql/,*.sql */*.sql)))
$(DATA_built): $(PARTS) $(UNLISTED) $(SRC)/Makefile $(SRC)/extension/$(EXT).control
$(INSTALL_SQL): $(SRC)/sql/assemble.awk
	$(if $(UNLISTED),$(error no list of SQL parts in the Makefile names $(UNLISTED)))
	@mkdir -p $(@D)
	awk -f $(SRC)/sql/assemble.awk $(STRUCTURE) $(FUNCTIONS) >$@
$(TAP_SQL): $(SRC)/sql/assemble.awk
	@mkdir -p $(@D)
	awk -v EXTENSION=$(TAP) -f $(SRC)/sql/assemble.awk $(TAP_PARTS) >$@
$(GRAPHILE_SQL): $(SRC)/sql/assemble.awk
	@mkdir -p $(@D)
	awk -v EXTENSION=$(GRAPHILE) -f $(SRC)/sql/assemble.awk $(GRAPHILE_PARTS) >$@
$(CITUS_SQL): $(SRC)/sql/assemble.awk
	@mkdir -p $(@D)
	awk -v EXTENSION=$(CITUS_EXT) -v VERSION=$(EXTVERSION) -v KEYS='text bigint uuid' \
	  -f $(SRC)/sql/assemble.awk $(CITUS_PARTS) >$@
$(UPGRADE_SQL): build/$(EXT)--%--$(EXTVERSION).sql: $(SRC)/sql/upgrade.awk \
  $(UPGRADE_BEGIN) $(SRC)/sql/upgrade/%--$(EXTVERSION).sql \
  $(SRC)/sql/releases/$(EXT)--%.sql
	@mkdir -p $(@D)
	awk -v VERSION=$(EXTVERSION) -f $< role=old $(SRC)/sql/releases/$(EXT)--$*.sql \
	  role=structure $(STRUCTURE) role=print $(UPGRADE_BEGIN) \
	  $(SRC)/sql/upgrade/$*--$(EXTVERSION).sql $(SQL_NEW_TABLES:%=$(SRC)/sql/%.sql) \
	  role=functions $(FUNCTIONS) >$@
.DELETE_ON_ERROR:

# The worker, and with it the console. CMake gets neither the extension's flags, which PGXS puts into variables that make
# exports, nor this make's overrides; WORKER_CXXFLAGS reaches it.
ifneq ($(WORKER),no)
all: worker-build
install: worker-install
uninstall: worker-uninstall
endif
WORKER_BUILD = build/worker
PREFIX = $(patsubst %/bin,%,$(bindir))
CMAKE ?= cmake
# off: each file is compiled by itself, which is quicker after a change of one.
UNITY ?= on
# Tests are built once a goal has asked for them in this build tree.
WORKER_TESTS ?= $(if $(wildcard $(WORKER_BUILD)/CMakeCache.txt),,OFF)
PLAIN = env -u VPATH -u CFLAGS -u CPPFLAGS -u CXXFLAGS -u LDFLAGS MAKEFLAGS="$${MAKEFLAGS%% -- *}"

worker-build:
	$(PLAIN) $(CMAKE) -S $(SRC)/worker -B $(WORKER_BUILD) -DCMAKE_BUILD_TYPE=Release \
	  -DCMAKE_EXPORT_COMPILE_COMMANDS=ON \
	  -DCMAKE_INSTALL_PREFIX='$(PREFIX)' -DCMAKE_INSTALL_BINDIR='$(bindir)' \
	  -DPULSE_UNITY='$(UNITY)' -DPULSE_SANITIZE='$(WORKER_SANITIZE)' \
	  -DCMAKE_CXX_FLAGS='$(WORKER_CXXFLAGS)' \
	  -DPULSE_CONSOLE=$(if $(filter no,$(CONSOLE)),OFF,ON) $(addprefix -DBUILD_TESTING=,$(WORKER_TESTS))
	+$(PLAIN) $(CMAKE) --build $(WORKER_BUILD)
worker-install: worker-build
	DESTDIR='$(DESTDIR)' $(CMAKE) --install $(WORKER_BUILD)
# With the files go the folders beneath the prefix that are empty without them.
INSTALLED = $(CURDIR)/$(WORKER_BUILD)/install_manifest.txt
worker-uninstall:
	sed 's:^:$(DESTDIR):' '$(INSTALLED)' | xargs -d '\n' rm -f
	if cd '$(DESTDIR)$(PREFIX)'; then sed -n 's:^$(PREFIX)/::p' '$(INSTALLED)' | \
	  xargs -d '\n' dirname | sort -u | xargs -d '\n' rmdir -p 2>/dev/null || true; fi

STAGE = $(CURDIR)/build/stage
stage: all ## install into build/stage, where the tests look
	+$(AGAIN) install DESTDIR='$(STAGE)'

.PHONY: stage worker-build worker-install worker-uninstall
endif

# The tests and other checks; a copy of the sources without them builds too.
include $(wildcard $(SRC)/test/test.mk)

dist: ## the release archive, from the last commit
	mkdir -p build
	git -C $(SRC) archive --prefix=$(EXT)-$(EXTVERSION)/ \
	  --output='$(CURDIR)/build/$(EXT)-$(EXTVERSION).zip' HEAD

deb: ## Debian packages of the worker and, for the server of PG_CONFIG, the extension: build/deb
	$(PLAIN) PG_CONFIG='$(PG_CONFIG)' $(SRC)/worker/deploy/debian/build '$(SRC)' '$(CURDIR)/build/deb'

help: ## this list
	@echo 'make [all]           build extension, worker, console (WORKER=no, CONSOLE=no: without)'
	@echo 'make install         install both; DESTDIR and PG_CONFIG are honoured'
	@echo 'make uninstall       remove both, in the tree that installed them'
	@echo 'make installcheck    pgTAP and isolation tests on the server of PGHOST and PGPORT, as a superuser'
	@echo 'make clean           remove what was built, and stop servers of this tree'
	@awk -F ':.*## ' '/^[a-z0-9-]*:.*## / { printf "make %-15s %s\n", $$1, $$2 }' \
	  $(SRC)/Makefile $(wildcard $(SRC)/test/test.mk)

.DEFAULT_GOAL := all
.PHONY: deb dist help
