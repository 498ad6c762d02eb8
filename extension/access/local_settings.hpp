// Settings of a C++ function for the code that it runs, as a SET clause gives settings to a
// function in SQL. A SET clause costs a tenth of an add, so a C++ function sets its settings around
// the call that needs them. An error ends the nest level of settings too.
#pragma once

#include "server/postgres.hpp"

extern "C" {
#include "jit/jit.h"
}

namespace pulse {

inline void set_in_level(const char* setting, const char* value) {
  (void)set_config_option(setting, value, PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0,
                          false);
}

// For user code that runs on the extension's tables: triggers, expressions and predicates of
// indexes, checks. User code runs with the extension owner's rights, so the caller's search_path
// must not apply. The extension's own code names every object in full and needs no path.
template <typename Run>
void under_secure_search_path(Run run) {
  int level = NewGUCNestLevel();
  set_in_level("search_path", "pg_catalog, pg_temp");
  run();
  AtEOXact_GUC(true, level);
}

// For statements of C++ functions, of which each call may make the plan anew. A plan that seems
// dear would be compiled for seconds, and nothing cancels a compilation.
template <typename Run>
void without_jit(Run run) {
  if (!jit_enabled) return run();
  int level = NewGUCNestLevel();
  set_in_level("jit", "off");
  run();
  AtEOXact_GUC(true, level);
}

// Both: for statements that may run user code.
template <typename Run>
void under_statement_settings(Run run) {
  without_jit([&] { under_secure_search_path(run); });
}

}  // namespace pulse
