// Ids of jobs, flows and operations: no id is given out twice, also where a server continues from a
// copy of its files that lags behind. See docs/design/copies.md.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// The next id of a sequence of ids. The first id after a move of the installation to another
// timeline or server leaps.
int64 next_id(Oid sequence);

}  // namespace pulse
