// Relcache invalidations for the extension's session caches. The server has ten slots for such
// callbacks, shared by all extensions, so the extension registers one and passes it on.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// Called with the changed relation; InvalidOid means any relation. Must not raise, because any lock
// of a relation may call it.
using InvalidationListener = void (*)(Oid relation);

// Registers a listener; call it once per listener.
void listen_to_invalidations(InvalidationListener listener);

}  // namespace pulse
