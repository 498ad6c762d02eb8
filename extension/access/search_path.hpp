// A safe search_path for user code that runs on the extension's tables: triggers, index
// expressions, checks. That code runs with the extension owner's rights, so the caller's
// search_path must not apply. The extension's own code names every object in full and needs no
// path: a SET clause on a function costs a tenth of an add.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// Begins a nest level of settings; an error ends it too.
int begin_secure_search_path();

template <typename Run>
void under_secure_search_path(Run run) {
  int level = begin_secure_search_path();
  run();
  AtEOXact_GUC(true, level);
}

}  // namespace pulse
