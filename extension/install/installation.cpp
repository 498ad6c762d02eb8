#include "install/installation.hpp"

#include "access/catalog.hpp"
#include "access/columns.hpp"
#include "liveness/liveness_clock.hpp"
#include "server/errors.hpp"
#include "server/invalidation.hpp"

namespace pulse {
namespace {

enum class Standing {
  kNone,    // the SQL of 0.1.0, which has no such table
  kUnused,  // no number was generated yet, or only by 0.1.0
  kOurs,
  kMoved,  // the same tables under another server: pg_upgrade, physical restore
  kCopy,   // restored from a dump, or cloned from another database
};

// The rows of pulse.installation as last read, and what they mean. Only a copy can have more than
// one row.
struct Reading {
  bool valid;
  Standing standing;
  Oid table;
  Oid witness;
  Oid job;  // oid of pulse.job, which identifies the installation
  int rows;
  pg_uuid_t id;
  int64 system_identifier;
  Oid database_oid;
  Oid job_oid;
  int64 epoch_base;
  int32 timeline;
  int64 highest;  // highest epoch of all rows
};
Reading cached;
uint64 invalidations = 0;
bool is_registered = false;

// A trigger on both tables sends this invalidation to every session.
void on_installation_change(Oid relation) {
  if (relation != InvalidOid && relation != cached.table && relation != cached.witness) return;
  cached.valid = false;
  invalidations++;
}

template <typename Use>
void each_row(Oid oid, Use use) {
  Relation table = table_open(oid, AccessShareLock);
  Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
  TupleTableSlot* slot = table_slot_create(table, nullptr);
  TableScanDesc scan = table_beginscan(table, snapshot, 0, nullptr);
  while (table_scan_getnextslot(scan, ForwardScanDirection, slot)) use(slot);
  table_endscan(scan);
  ExecDropSingleTupleTableSlot(slot);
  UnregisterSnapshot(snapshot);
  table_close(table, AccessShareLock);
}

void read_installation_row(Reading* reading, TupleTableSlot* slot) {
  bool isnull;
  reading->rows++;
  reading->id = *DatumGetUUIDP(slot_getattr(slot, kInstallationId, &isnull));
  reading->system_identifier =
      DatumGetInt64(slot_getattr(slot, kInstallationSystemIdentifier, &isnull));
  reading->database_oid = DatumGetObjectId(slot_getattr(slot, kInstallationDatabaseOid, &isnull));
  reading->job_oid = DatumGetObjectId(slot_getattr(slot, kInstallationJobOid, &isnull));
  reading->epoch_base = DatumGetInt32(slot_getattr(slot, kInstallationEpochBase, &isnull));
  reading->timeline = DatumGetInt32(slot_getattr(slot, kInstallationTimeline, &isnull));
  reading->highest = Max(reading->highest, reading->epoch_base + reading->timeline);
}

int64 this_system() { return static_cast<int64>(GetSystemIdentifier()); }

// A dump contains the installation's row but not the witness. Without the witness, a copy could
// pass for an upgraded server: a server made by the same script can have the same oids.
Standing standing_of(const Reading& reading, bool has_witness) {
  if (reading.rows == 0) return Standing::kUnused;
  // A dump restored over an installation in use adds a second row.
  if (reading.rows > 1 || !has_witness || reading.database_oid != MyDatabaseId ||
      reading.job_oid != catalog()->job)
    return Standing::kCopy;
  return reading.system_identifier == this_system() ? Standing::kOurs : Standing::kMoved;
}

void read_tables(Reading* reading) {
  each_row(reading->table,
           [reading](TupleTableSlot* slot) { read_installation_row(reading, slot); });
  bool has_witness = false;
  each_row(reading->witness, [reading, &has_witness](TupleTableSlot* slot) {
    bool isnull;
    pg_uuid_t* id = DatumGetUUIDP(slot_getattr(slot, 1, &isnull));
    has_witness |= memcmp(id->data, reading->id.data, UUID_LEN) == 0;
  });
  reading->standing = standing_of(*reading, has_witness);
}

const Reading& current_reading() {
  if (cached.valid && cached.job == catalog()->job) return cached;
  if (!is_registered) {
    listen_to_invalidations(on_installation_change);
    is_registered = true;
  }
  Reading reading = {};
  reading.job = catalog()->job;
  reading.table = get_relname_relid("installation", catalog()->schema);
  reading.witness = get_relname_relid("installation_witness", catalog()->schema);
  // An older SQL version is not cached, because ALTER EXTENSION UPDATE may follow at any time.
  if (!OidIsValid(reading.table) || !OidIsValid(reading.witness)) return cached = reading;
  // The invalidation callback needs these oids. The reading stays invalid until all is read,
  // because reading can fail.
  cached = reading;
  uint64 before = invalidations;
  read_tables(&reading);
  reading.valid = invalidations == before;
  return cached = reading;
}

bool is_up_to_date(const Reading& reading) {
  switch (reading.standing) {
    case Standing::kNone:
    case Standing::kCopy: return true;
    case Standing::kOurs: return reading.timeline == current_timeline();
    case Standing::kUnused:
    case Standing::kMoved: return false;
  }
  pg_unreachable();
}

// Runs under the latest snapshot at any isolation level, so that it sees what another session
// committed during the wait for the lock.
void run_write(const char* statement, int count, Oid* types, Datum* values) {
  if (SPI_connect() != SPI_OK_CONNECT) elog(ERROR, "SPI_connect failed");
  SPIPlanPtr plan = SPI_prepare(statement, count, types);
  if (!plan ||
      SPI_execute_snapshot(plan, values, nullptr, GetLatestSnapshot(), nullptr, false, true, 0) < 0)
    elog(ERROR, "could not write pulse.installation: %s", statement);
  SPI_finish();
}

void write_first_row() {
  Oid types[] = {INT8OID, OIDOID, OIDOID, INT4OID};
  Datum values[] = {Int64GetDatum(this_system()), ObjectIdGetDatum(MyDatabaseId),
                    ObjectIdGetDatum(catalog()->job), Int32GetDatum(current_timeline())};
  run_write("DELETE FROM pulse.installation_witness", 0, nullptr, nullptr);
  run_write(
      "WITH first AS (INSERT INTO pulse.installation"
      " (id, system_identifier, database_oid, job_oid, epoch_base, timeline, created_at)"
      " VALUES (pg_catalog.gen_random_uuid(), $1, $2, $3, pulse._first_epoch_base($4), $4,"
      " pulse.now()) RETURNING id)"
      " INSERT INTO pulse.installation_witness (installation_id) SELECT id FROM first",
      4, types, values);
}

// A later timeline alone makes greater numbers. Under another server, or back on an earlier
// timeline, the base rises above every epoch used before.
void move_installation(const Reading& reading) {
  bool raise = reading.standing == Standing::kMoved || reading.timeline > current_timeline();
  int64 epoch_base = raise ? reading.highest + 1 : reading.epoch_base;
  Oid types[] = {INT8OID, INT4OID, INT4OID, BOOLOID};
  Datum values[] = {Int64GetDatum(this_system()), Int32GetDatum(static_cast<int32>(epoch_base)),
                    Int32GetDatum(current_timeline()), BoolGetDatum(raise)};
  run_write(
      "UPDATE pulse.installation SET system_identifier = $1, epoch_base = $2, timeline = $3,"
      " moved_at = CASE WHEN $4 THEN pulse.now() ELSE moved_at END",
      4, types, values);
  if (raise)
    ereport(LOG, (errmsg("pg_pulse continues in database %u under another server", MyDatabaseId),
                  errdetail("The system identifier was " INT64_FORMAT " and is " INT64_FORMAT
                            "; the tables are the same, as after pg_upgrade. Tokens and worker ids "
                            "count from epoch " INT64_FORMAT ".",
                            reading.system_identifier, this_system(), epoch_base)));
}

const char* name_of(Standing standing) {
  switch (standing) {
    case Standing::kNone: return "none";
    case Standing::kUnused: return "unused";
    case Standing::kOurs: return "ours";
    case Standing::kMoved: return "moved";
    case Standing::kCopy: return "copy";
  }
  pg_unreachable();
}

}  // namespace

void record_installation() {
  if (is_up_to_date(current_reading())) return;
  // Waits for another session that writes the first row; later sessions find the row.
  LockRelationOid(cached.table, ShareRowExclusiveLock);
  cached.valid = false;
  if (is_up_to_date(current_reading())) return;
  if (cached.standing == Standing::kUnused)
    write_first_row();
  else
    move_installation(cached);
  CommandCounterIncrement();
  cached.valid = false;
  current_reading();
}

int64 number_epoch() {
  const Reading& reading = current_reading();
  // A worker may register in a copy; its id is one that the original installation never generates.
  if (reading.standing == Standing::kCopy) return reading.highest + current_timeline();
  return reading.epoch_base + current_timeline();
}

void require_adopted() {
  const Reading& reading = current_reading();
  if (reading.standing != Standing::kCopy) return;
  ereport(
      ERROR,
      (errcode(kClaimsOff), errmsg("this copy has not been adopted"),
       errdetail("Its jobs came from database %u of system " INT64_FORMAT ", where they may still"
                 " run; this is database %u of system " INT64_FORMAT ".",
                 reading.database_oid, reading.system_identifier, MyDatabaseId, this_system()),
       errhint("If they are to run here: SELECT pulse.adopt_installation().")));
}

}  // namespace pulse

// pulse._rows_changed(): every session discards its cached rows of the trigger's table.
PULSE_FUNCTION(pulse_rows_changed) {
  if (!CALLED_AS_TRIGGER(fcinfo)) elog(ERROR, "not called as a trigger");
  CacheInvalidateRelcache(reinterpret_cast<TriggerData*>(fcinfo->context)->tg_relation);
  return PointerGetDatum(nullptr);
}

// pulse._installation_standing(): unused, ours, moved or copy.
PULSE_FUNCTION(pulse_installation_standing) {
  PG_RETURN_TEXT_P(cstring_to_text(pulse::name_of(pulse::current_reading().standing)));
}

// pulse._lock_numbers(): waits for every transaction that generated a token or a worker id, and
// blocks new ones. The lock order is that in which a worker generates them.
PULSE_FUNCTION(pulse_lock_numbers) {
  PreventCommandIfReadOnly("adopt_installation");
  PreventCommandDuringRecovery("adopt_installation");
  LockRelationOid(pulse::catalog()->worker_id_seq, ShareRowExclusiveLock);
  LockRelationOid(pulse::catalog()->token_seq, ShareRowExclusiveLock);
  LockRelationOid(get_relname_relid("installation", pulse::catalog()->schema),
                  ShareRowExclusiveLock);
  PG_RETURN_VOID();
}
