// Parents: which parent buckets are awaited, which parent marks are set, and where the checks of
// waits go on, for sql/flow/.
#include "shared/memory.hpp"

// pulse_internal.await_bucket(bucket, is_awaited): whether the commit of an end sets
// the parent mark of this bucket.
PULSE_FUNCTION(pulse_await_bucket) {
  pulse::DatabaseState* database = pulse::this_database();
  int bucket = pulse::parent_bucket(PG_GETARG_INT32(0));
  if (database && PG_GETARG_BOOL(1))
    pulse::set_bit(database->awaited_parents, bucket);
  else if (database)
    (void)pulse::take_bit(database->awaited_parents, bucket);
  PG_RETURN_VOID();
}

namespace {

// Where the last check of a parent bucket stopped: the parent and the child; bucket -1: unknown.
struct WaitPosition {
  int bucket;
  Datum ids[2];
};
WaitPosition wait_position = {-1, {}};

}  // namespace

// pulse_internal.store_wait_position(bucket, parent_id, child_id)
PULSE_FUNCTION(pulse_store_wait_position) {
  wait_position = {PG_GETARG_INT32(0), {PG_GETARG_DATUM(1), PG_GETARG_DATUM(2)}};
  PG_RETURN_VOID();
}

// pulse_internal.take_wait_position(bucket)
PULSE_FUNCTION(pulse_take_wait_position) {
  if (PG_GETARG_INT32(0) != wait_position.bucket) PG_RETURN_NULL();
  wait_position.bucket = -1;
  PG_RETURN_ARRAYTYPE_P(
      construct_array(wait_position.ids, 2, INT8OID, 8, FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
}

// pulse_internal.is_parent_marked(parent_id)
PULSE_FUNCTION(pulse_is_parent_marked) {
  pulse::DatabaseState* database = pulse::this_database();
  if (!database) PG_RETURN_BOOL(false);
  int mark = pulse::parent_mark(pulse::parent_bucket(PG_GETARG_INT64(0)));
  PG_RETURN_BOOL(pulse::is_bit_set(database->promotion_marks, mark));
}

// pulse_internal.take_waits_to_check()
PULSE_FUNCTION(pulse_take_waits_to_check) {
  pulse::DatabaseState* database = pulse::this_database();
  PG_RETURN_INT32(database ? pg_atomic_exchange_u32(&database->next_parent_bucket, 0) : 0);
}

// pulse_internal.store_waits_to_check(next_bucket)
PULSE_FUNCTION(pulse_store_waits_to_check) {
  pulse::DatabaseState* database = pulse::this_database();
  if (database)
    pg_atomic_write_u32(&database->next_parent_bucket, static_cast<uint32>(PG_GETARG_INT32(0)));
  PG_RETURN_VOID();
}
