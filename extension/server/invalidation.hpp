// Whoever remembers what was in a relation hears here that it was changed. The server has ten
// places for such listeners, for itself and all extensions together: ours share one.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// Of which relation; InvalidOid: perhaps of any. Must not raise, and may be called in the middle of
// anything that locks a relation.
using InvalidationListener = void (*)(Oid relation);

// Once for each listener, from when on it is called.
void listen_to_invalidations(InvalidationListener listener);

}  // namespace pulse
