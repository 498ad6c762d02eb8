// How many dead letters of this database were refused: sql/job/dead_letter.sql. An end that is
// rolled back counts too, because the server's log has its warning.
#include "shared/memory.hpp"

// pulse_internal.count_refused_letter()
PULSE_FUNCTION(pulse_count_refused_letter) {
  if (pulse::DatabaseState* database = pulse::this_database())
    pg_atomic_fetch_add_u64(&database->refused_letters, 1);
  PG_RETURN_VOID();
}

// pulse_internal.dead_letters_refused()
PULSE_FUNCTION(pulse_dead_letters_refused) {
  pulse::DatabaseState* database = pulse::this_database();
  if (!database) PG_RETURN_NULL();
  PG_RETURN_INT64(static_cast<int64>(pg_atomic_read_u64(&database->refused_letters)));
}
