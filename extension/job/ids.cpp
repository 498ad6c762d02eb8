#include "job/ids.hpp"

#include "access/catalog.hpp"
#include "access/columns.hpp"
#include "access/sequence.hpp"
#include "server/advisory_lock.hpp"
#include "server/compat.hpp"
#include "server/values.hpp"

namespace pulse {
namespace {

// What this session knows of the ids that it may take.
struct NotedPlace {
  uint64 generation;  // of the catalog
  int64 place;        // the value of id_place_seq
  int64 ceiling;      // the greatest id of this database's shard
};
NotedPlace noted;

int64 shard_of(int64 id) { return id >> 44; }

int64 first_id(int64 shard) { return shard << 44 | 1; }

// Where ids are taken: the timeline, above a hash of the system identifier.
int64 place() {
  uint64 system = GetSystemIdentifier();
  uint32 hash = static_cast<uint32>(system ^ system >> 32);
  return static_cast<int64>(static_cast<uint64>(insertion_timeline()) << 32 | hash);
}

bool is_leap_due() { return last_number(catalog()->id_place_seq) != place(); }

// All that a leap writes stands in sequences, so no rollback undoes it, and no session waits for
// the end of the transaction that leaps.
void leap(bool is_forced) {
  advisory_lock(LockKind::kLeap, 0, ExclusiveLock);
  if (is_forced || is_leap_due()) {
    Oid types[] = {INT8OID};
    (void)OidFunctionCall1(internal_function("leap", lengthof(types), types),
                           Int64GetDatum(place()));
  }
  release_advisory_lock(LockKind::kLeap, 0, ExclusiveLock);
}

// Reads a column of a small table until `visit` returns false. The lock ends with the call, so a
// DBA can change the table while the calling transaction stays open.
template <typename Visit>
void read_column(Oid oid, AttrNumber column, Visit visit) {
  Relation table = table_open(oid, AccessShareLock);
  Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
  TupleTableSlot* row = table_slot_create(table, nullptr);
  TableScanDesc scan = table_beginscan(table, snapshot, 0, nullptr);
  while (table_scan_getnextslot(scan, ForwardScanDirection, row) &&
         visit(DatumGetInt64(value_of(row, column)))) {
  }
  table_endscan(scan);
  ExecDropSingleTupleTableSlot(row);
  UnregisterSnapshot(snapshot);
  table_close(table, AccessShareLock);
}

bool has_gap_row(int64 to_id) {
  bool is_found = false;
  read_column(get_relname_relid("id_gap", catalog()->schema), kIdGapTo,
              [&](int64 to) { return !(is_found = to == to_id); });
  return is_found;
}

// Without a row, no shard was set: the first token writes the row. pulse_internal.id_bounds says
// the same.
int64 ceiling() {
  int64 greatest = 0;
  read_column(catalog()->installation, kInstallationIdCeiling, [&](int64 id) {
    greatest = Max(greatest, id);
    return true;
  });
  return greatest ? greatest : first_id(1) - 2;
}

void leap_after_move() {
  NotedPlace here = {catalog()->generation, place(), PG_INT64_MAX};
  if (noted.generation == here.generation && noted.place == here.place) return;
  // The SQL of 0.1.0 lacks the sequence.
  if (OidIsValid(catalog()->id_place_seq)) {
    if (is_leap_due()) leap(false);
    here.ceiling = ceiling();
  }
  noted = here;
}

// The call may have waited at the sequence for set_shard(), and has then noted the ceiling of the
// shard before. A refused id leaves the sequence at the ceiling, because the ids behind it belong
// to another shard.
void check_ceiling(Oid sequence, int64 id) {
  if (id <= noted.ceiling) return;
  noted.ceiling = ceiling();
  if (id <= noted.ceiling) return;
  (void)DirectFunctionCall2(setval_oid, ObjectIdGetDatum(sequence), Int64GetDatum(noted.ceiling));
  ereport(ERROR, (errcode(ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED),
                  errmsg("shard " INT64_FORMAT " has no ids left", shard_of(noted.ceiling)),
                  errhint("Let the jobs end, and create the extension anew.")));
}

}  // namespace

int64 next_id(Oid sequence) {
  PreventCommandDuringRecovery("pulse_internal.next_id()");
  leap_after_move();
  int64 id = take_number(sequence);
  check_ceiling(sequence, id);
  return id;
}

}  // namespace pulse

// pulse_internal.shard_of(id)
PULSE_FUNCTION(pulse_shard_of) {
  PG_RETURN_INT32(static_cast<int32>(pulse::shard_of(PG_GETARG_INT64(0))));
}

// pulse_internal.first_id(shard)
PULSE_FUNCTION(pulse_first_id) { PG_RETURN_INT64(pulse::first_id(PG_GETARG_INT32(0))); }

// pulse_internal.next_id(sequence)
PULSE_FUNCTION(pulse_next_id) { PG_RETURN_INT64(pulse::next_id(PG_GETARG_OID(0))); }

// pulse_internal.id_place()
PULSE_FUNCTION(pulse_id_place) {
  PreventCommandDuringRecovery("pulse_internal.id_place()");
  PG_RETURN_INT64(pulse::place());
}

// pulse_internal.has_gap_row(to_id)
PULSE_FUNCTION(pulse_has_gap_row) { PG_RETURN_BOOL(pulse::has_gap_row(PG_GETARG_INT64(0))); }

// pulse_internal.is_leap_due()
PULSE_FUNCTION(pulse_is_leap_due) { PG_RETURN_BOOL(!RecoveryInProgress() && pulse::is_leap_due()); }

// pulse_internal.lock_ids(): the leap's lock comes first, as in a leap.
PULSE_FUNCTION(pulse_lock_ids) {
  PreventCommandDuringRecovery("pulse_internal.lock_ids()");
  pulse::advisory_lock(pulse::LockKind::kLeap, 0, ExclusiveLock);
  const char* const sequences[] = {"job_id_seq", "flow_id_seq", "operation_id_seq"};
  for (const char* name : sequences)
    LockRelationOid(get_relname_relid(name, pulse::catalog()->schema), ShareRowExclusiveLock);
  PG_RETURN_VOID();
}

// pulse_internal.leap_here()
PULSE_FUNCTION(pulse_leap_here) {
  PreventCommandDuringRecovery("pulse_internal.leap_here()");
  pulse::leap(true);
  PG_RETURN_VOID();
}
