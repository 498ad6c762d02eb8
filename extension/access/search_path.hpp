// Where names are looked for while code of others runs that hangs on our tables: triggers, index
// expressions, checks. It runs with our rights, so it must not find what our caller put in its
// search_path. Our own code names everything in full and needs no path, which is worth it: one that
// is set for a function costs a tenth of an add.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// To be ended in the reverse order; an error ends it too.
int begin_secure_search_path();
void end_secure_search_path(int level);

template <typename Run>
void under_secure_search_path(Run run) {
  int level = begin_secure_search_path();
  run();
  end_secure_search_path(level);
}

}  // namespace pulse
