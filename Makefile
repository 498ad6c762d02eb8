# pg_pulse: the extension (PGXS) and its worker (CMake). `make help` lists the targets.

# Names and version. The control file is the version of record.
EXT        = pg_pulse
SRC       := $(or $(VPATH),.)
EXTVERSION := $(shell sed -n "s/^default_version = '\(.*\)'/\1/p" $(SRC)/extension/$(EXT).control)

# What is built.
EXTENSION  = extension/$(EXT)
MODULE_big = $(EXT)
OBJS       = $(patsubst $(SRC)/%.cpp,%.o,$(sort $(wildcard $(SRC)/extension/*.cpp)))
HPP        = $(wildcard $(SRC)/extension/*.hpp)
DATA_built = build/$(EXT)--$(EXTVERSION).sql

# SQL parts in load order. Structure is created once; functions use CREATE OR REPLACE, so that an
# upgrade replays them. A listed part that is missing and a part that no list names fail the build.
SQL_STRUCTURE = preamble types tables
SQL_FUNCTIONS =

# Tests of an installed extension, against the server that PGHOST and PGPORT name.
ISOLATION      = $(sort $(basename $(notdir $(wildcard $(SRC)/test/isolation/specs/*.spec))))
ISOLATION_OPTS = --inputdir=$(SRC)/test/isolation --load-extension=$(EXT)

# Flags.
#   -isystem           the server's headers come first and without noise under -Wextra
#   -fno-exceptions, -fno-rtti, -fno-threadsafe-statics   nothing may need the C++ runtime: an
#                      exception must never meet the server's longjmp, and the C compiler links
#   -Wno-register      PostgreSQL 15's headers still say `register`
#   with_llvm          off: bitcode helps to inline functions into JIT-compiled expressions, which no
#                      function of a queue takes part in; it would double the build and need clang
override with_llvm = no
PG_CPPFLAGS = -isystem $(includedir_server) -DPULSE_VERSION='"$(EXTVERSION)"'
PG_CXXFLAGS = -std=c++17 -fno-exceptions -fno-rtti -fno-threadsafe-statics -Wno-register \
              -Wall -Wextra $(PULSE_CXXFLAGS)
EXTRA_CLEAN = build output_iso

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

# Generated files. PGXS tracks no headers, and object directories must exist in a VPATH build.
$(OBJS): $(HPP) $(SRC)/Makefile $(SRC)/extension/$(EXT).control | $(CURDIR)/extension
$(CURDIR)/extension:
	mkdir -p $@

SQL_PARTS = $(patsubst %,$(SRC)/sql/%.sql,$(SQL_STRUCTURE) $(SQL_FUNCTIONS))
UNLISTED  = $(filter-out $(SQL_PARTS),$(wildcard $(SRC)/sql/*.sql))

# An install script that replaced objects would adopt what somebody planted (CVE-2022-2625).
$(DATA_built): $(SQL_PARTS) $(UNLISTED) $(SRC)/Makefile
	$(if $(UNLISTED),$(error no list in the Makefile names $(UNLISTED)))
	@mkdir -p $(@D)
	awk -f $(SRC)/sql/assemble.awk $(SQL_PARTS) >$@
.DELETE_ON_ERROR:

STAGE = $(CURDIR)/build/stage
stage: all
	$(MAKE) install DESTDIR=$(STAGE)
.PHONY: stage
