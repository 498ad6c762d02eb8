// The sweeps of this database, as sessions see them: who sweeps, and how many sweeps a lock of a
// table has kept from recovery.
#include "background/process.hpp"

namespace pulse {

// Every role may read a setting, in any database. So a read takes no database entry from other
// databases.
const char* pulse_show_background_sweeps() {
  DatabaseState* database = entry_if_taken();
  return database && is_served(database) ? "on" : "off";
}

}  // namespace pulse

// pulse_internal.note_blocked_sweep(is_blocked)
PULSE_FUNCTION(pulse_note_blocked_sweep) {
  if (pulse::DatabaseState* database = pulse::this_database()) {
    if (PG_GETARG_BOOL(0))
      pg_atomic_fetch_add_u64(&database->blocked_sweeps, 1);
    else if (pg_atomic_read_u64(&database->blocked_sweeps) > 0)
      pg_atomic_write_u64(&database->blocked_sweeps, 0);
  }
  PG_RETURN_VOID();
}

// pulse_internal.blocked_sweeps()
PULSE_FUNCTION(pulse_blocked_sweeps) {
  pulse::DatabaseState* database = pulse::this_database();
  if (!database) PG_RETURN_NULL();
  PG_RETURN_INT64(static_cast<int64>(pg_atomic_read_u64(&database->blocked_sweeps)));
}
