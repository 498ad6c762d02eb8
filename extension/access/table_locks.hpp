// Locks of whole tables that are tried: a sweep waits for no table (sql/recovery/tables.sql). And
// the lock of a schema, for the import from Graphile Worker.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// Locks a table until the transaction ends, with its indexes and long values, which have locks of
// their own. Returns false, and locks nothing, where another transaction has or awaits a lock that
// conflicts, and where the table is gone.
bool try_lock_table(Oid table, LOCKMODE mode);

}  // namespace pulse
