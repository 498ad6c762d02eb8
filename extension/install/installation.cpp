#include "install/installation.hpp"

#include "access/catalog.hpp"
#include "access/local_settings.hpp"
#include "liveness/clock.hpp"
#include "server/errors.hpp"

namespace pulse {
namespace {

// The last reading of pulse_internal.standing in this database. A trigger on pulse.installation
// makes every session read the catalog again.
struct Reading {
  uint64 generation;  // of the catalog
  bool is_unused;
  bool is_copy;
  bool is_moved;
  bool is_subscribed;
  Oid database_oid;
  int64 system_identifier;
  int64 epoch_base;
  int64 timeline;
  int64 highest;  // highest epoch of all rows
};
Reading cached;

// Runs a statement under the latest snapshot at any isolation level. So it sees the commits of
// other sessions during the wait for the lock. The caller disconnects from SPI.
void begin_latest(const char* statement, int count, Oid* types, Datum* values) {
  if (SPI_connect() != SPI_OK_CONNECT) elog(ERROR, "SPI_connect failed");
  under_statement_settings([&] {
    SPIPlanPtr plan = SPI_prepare(statement, count, types);
    if (!plan || SPI_execute_snapshot(plan, values, nullptr, GetLatestSnapshot(), nullptr, false,
                                      true, 0) < 0)
      elog(ERROR, "could not run: %s", statement);
  });
}

void read_standing(Reading* reading) {
  begin_latest(
      "SELECT is_unused, is_copy, is_moved, database_oid, system_identifier, epoch_base, timeline,"
      " highest, is_subscribed FROM pulse_internal.standing",
      0, nullptr, nullptr);
  auto column = [](int number) {
    bool isnull;
    return SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, number, &isnull);
  };
  reading->is_unused = DatumGetBool(column(1));
  reading->is_copy = DatumGetBool(column(2));
  reading->is_moved = DatumGetBool(column(3));
  reading->database_oid = DatumGetObjectId(column(4));
  reading->system_identifier = DatumGetInt64(column(5));
  reading->epoch_base = DatumGetInt32(column(6));
  reading->timeline = DatumGetInt32(column(7));
  reading->highest = DatumGetInt32(column(8));
  reading->is_subscribed = DatumGetBool(column(9));
  SPI_finish();
}

const Reading& current_reading() {
  const Catalog* now = catalog();
  if (cached.generation == now->generation) return cached;
  Reading reading = {};
  reading.generation = now->generation;
  if (OidIsValid(now->installation)) read_standing(&reading);
  return cached = reading;
}

bool is_up_to_date(const Reading& reading) {
  // The SQL of 0.1.0 has no table pulse.installation.
  if (!OidIsValid(catalog()->installation) || reading.is_copy) return true;
  return !reading.is_unused && !reading.is_moved && reading.timeline == current_timeline();
}

void write_first_row() {
  Oid types[] = {INT4OID};
  Datum values[] = {Int32GetDatum(current_timeline())};
  begin_latest(
      "WITH former AS (DELETE FROM pulse.installation_witness),"
      " first AS (INSERT INTO pulse.installation"
      " (id, system_identifier, database_oid, job_oid, epoch_base, timeline, created_at)"
      " SELECT pg_catalog.gen_random_uuid(), t.system_identifier, t.database_oid, t.job_oid,"
      " pulse_internal.first_epoch_base($1), $1, pulse.now() FROM pulse_internal.this_place AS t "
      "RETURNING id)"
      " INSERT INTO pulse.installation_witness (installation_id) SELECT id FROM first",
      1, types, values);
  SPI_finish();
}

// A later timeline alone makes greater numbers. Under another server, or back on an earlier
// timeline, the base rises above every epoch used before.
void move_installation(const Reading& reading) {
  bool raise = reading.is_moved || reading.timeline > current_timeline();
  int64 epoch_base = raise ? reading.highest + 1 : reading.epoch_base;
  Oid types[] = {INT4OID, INT4OID, BOOLOID};
  Datum values[] = {Int32GetDatum(static_cast<int32>(epoch_base)),
                    Int32GetDatum(current_timeline()), BoolGetDatum(raise)};
  begin_latest(
      "UPDATE pulse.installation SET system_identifier = t.system_identifier, epoch_base = $1,"
      " timeline = $2, moved_at = CASE WHEN $3 THEN pulse.now() ELSE moved_at END"
      " FROM pulse_internal.this_place AS t",
      3, types, values);
  SPI_finish();
  if (raise)
    ereport(LOG, (errmsg("pg_pulse continues in database %u under another server", MyDatabaseId),
                  errdetail("The system identifier was " INT64_FORMAT " and is " UINT64_FORMAT
                            "; the tables are the same, as after pg_upgrade. Tokens and worker ids "
                            "count from epoch " INT64_FORMAT ".",
                            reading.system_identifier, GetSystemIdentifier(), epoch_base)));
}

void shift_numbers() {
  begin_latest("SELECT pulse_internal.shift_numbers()", 0, nullptr, nullptr);
  SPI_finish();
}

// Under the locks of record_installation().
void write_row() {
  if (is_up_to_date(current_reading())) return;
  if (cached.is_unused)
    write_first_row();
  else
    move_installation(cached);
  shift_numbers();
  CommandCounterIncrement();
}

// In the order of record_installation().
bool try_lock_installation() {
  return ConditionalLockRelationOid(catalog()->worker_id_seq, RowExclusiveLock) &&
         ConditionalLockRelationOid(catalog()->token_seq, RowExclusiveLock) &&
         ConditionalLockRelationOid(catalog()->installation, ShareRowExclusiveLock);
}

}  // namespace

void record_installation() {
  if (is_up_to_date(current_reading())) return;
  // In the order of lock_numbers(), so that no adoption holds the one lock and waits for the other.
  LockRelationOid(catalog()->worker_id_seq, RowExclusiveLock);
  LockRelationOid(catalog()->token_seq, RowExclusiveLock);
  // Waits for another session that writes the row; the invalidation of that session arrives with
  // the lock.
  LockRelationOid(catalog()->installation, ShareRowExclusiveLock);
  write_row();
}

int64 number_epoch() {
  const Reading& reading = current_reading();
  // A worker may register in a copy; it gets an id that the original installation never generates.
  if (reading.is_copy) return reading.highest + current_timeline();
  return reading.epoch_base + current_timeline();
}

void require_adopted() {
  const Reading& reading = current_reading();
  if (reading.is_subscribed)
    ereport(ERROR, (errcode(kClaimsOff), errmsg("the jobs here are a publisher's"),
                    errdetail("A subscription of this database writes pulse.job."),
                    errhint("If they are to run here: DROP SUBSCRIPTION, then SELECT "
                            "pulse.adopt_installation().")));
  if (!reading.is_copy) return;
  ereport(ERROR, (errcode(kClaimsOff), errmsg("this copy has not been adopted"),
                  errdetail("Its jobs came from database %u of system " INT64_FORMAT
                            ", where they may still"
                            " run; this is database %u of system " UINT64_FORMAT ".",
                            reading.database_oid, reading.system_identifier, MyDatabaseId,
                            GetSystemIdentifier()),
                  errhint("If they are to run here: SELECT pulse.adopt_installation().")));
}

}  // namespace pulse

// pulse_internal.rows_changed(): every session discards its cached rows of the trigger's table.
PULSE_FUNCTION(pulse_rows_changed) {
  if (!CALLED_AS_TRIGGER(fcinfo)) elog(ERROR, "not called as a trigger");
  CacheInvalidateRelcache(reinterpret_cast<TriggerData*>(fcinfo->context)->tg_relation);
  return PointerGetDatum(nullptr);
}

PULSE_FUNCTION(pulse_system_identifier) {
  PG_RETURN_INT64(static_cast<int64>(GetSystemIdentifier()));
}

// pulse_internal.record_installation()
PULSE_FUNCTION(pulse_record_installation) {
  pulse::record_installation();
  PG_RETURN_VOID();
}

// pulse_internal.follow_server(): the first number of an epoch locks the row until its transaction
// ends, which may be a long one of an application, and other numbers wait. So a sweep, whose
// transaction is short, begins the epoch, unless another session does. The row of the first use is
// left to the first number, because a database without the row is no copy after its restore.
PULSE_FUNCTION(pulse_follow_server) {
  using namespace pulse;
  if (!current_reading().is_unused && !is_up_to_date(cached) && try_lock_installation())
    write_row();
  PG_RETURN_VOID();
}

// pulse_internal.lock_numbers(): waits for every transaction that generated a token or a worker id,
// and blocks new numbers. The locks have the order in which a worker generates the numbers.
PULSE_FUNCTION(pulse_lock_numbers) {
  PreventCommandIfReadOnly("a change of the installation");
  PreventCommandDuringRecovery("a change of the installation");
  LockRelationOid(pulse::catalog()->worker_id_seq, ShareRowExclusiveLock);
  LockRelationOid(pulse::catalog()->token_seq, ShareRowExclusiveLock);
  LockRelationOid(pulse::catalog()->installation, ShareRowExclusiveLock);
  PG_RETURN_VOID();
}
