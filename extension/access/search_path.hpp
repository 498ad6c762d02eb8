// A safe search_path for user code that runs on the extension's tables: triggers, expressions and
// predicates of indexes, checks. That code runs with the extension owner's rights, so the caller's
// search_path must not apply. The extension's own code names every object in full and needs no
// path: a SET clause on a function costs a tenth of an add.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// An error ends the nest level of settings too.
template <typename Run>
void under_secure_search_path(Run run) {
  int level = NewGUCNestLevel();
  (void)set_config_option("search_path", "pg_catalog, pg_temp", PGC_USERSET, PGC_S_SESSION,
                          GUC_ACTION_SAVE, true, 0, false);
  run();
  AtEOXact_GUC(true, level);
}

}  // namespace pulse
