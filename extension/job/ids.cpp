#include "job/ids.hpp"

#include "access/catalog.hpp"
#include "access/columns.hpp"
#include "access/sequence.hpp"
#include "server/advisory_lock.hpp"
#include "server/compat.hpp"
#include "server/values.hpp"

namespace pulse {
namespace {

// The value of id_place_seq as this session has last read or written the sequence.
struct NotedPlace {
  uint64 generation;  // of the catalog
  int64 place;
};
NotedPlace noted;

// Where ids are taken: the timeline, above a hash of the system identifier.
int64 place() {
  uint64 system = GetSystemIdentifier();
  uint32 hash = static_cast<uint32>(system ^ system >> 32);
  return static_cast<int64>(static_cast<uint64>(insertion_timeline()) << 32 | hash);
}

bool is_leap_due() { return last_number(catalog()->id_place_seq) != place(); }

// All that a leap writes stands in sequences, so no rollback undoes the leap, and no session waits
// for the end of the transaction that leaps.
void leap(bool is_forced) {
  advisory_lock(LockKind::kLeap, 0, ExclusiveLock);
  if (is_forced || is_leap_due()) {
    Oid types[] = {INT8OID};
    (void)OidFunctionCall1(internal_function("leap", lengthof(types), types),
                           Int64GetDatum(place()));
  }
  release_advisory_lock(LockKind::kLeap, 0, ExclusiveLock);
}

// The lock ends with the call, so a DBA can change the table while the calling transaction stays
// open.
bool has_gap_row(int64 to_id) {
  Relation table = table_open(get_relname_relid("id_gap", catalog()->schema), AccessShareLock);
  Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
  TupleTableSlot* row = table_slot_create(table, nullptr);
  TableScanDesc scan = table_beginscan(table, snapshot, 0, nullptr);
  bool is_found = false;
  while (!is_found && table_scan_getnextslot(scan, ForwardScanDirection, row))
    is_found = DatumGetInt64(value_of(row, kIdGapTo)) == to_id;
  table_endscan(scan);
  ExecDropSingleTupleTableSlot(row);
  UnregisterSnapshot(snapshot);
  table_close(table, AccessShareLock);
  return is_found;
}

void leap_after_move() {
  // The SQL of 0.1.0 lacks the sequence.
  if (!OidIsValid(catalog()->id_place_seq)) return;
  NotedPlace here = {catalog()->generation, place()};
  if (noted.generation == here.generation && noted.place == here.place) return;
  if (is_leap_due()) leap(false);
  noted = here;
}

}  // namespace

int64 next_id(Oid sequence) {
  PreventCommandDuringRecovery("pulse_internal.next_id()");
  leap_after_move();
  return take_number(sequence);
}

}  // namespace pulse

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

// pulse_internal.leap_here()
PULSE_FUNCTION(pulse_leap_here) {
  PreventCommandDuringRecovery("pulse_internal.leap_here()");
  pulse::leap(true);
  PG_RETURN_VOID();
}
