#include "queue/queue_marks.hpp"

#include "access/catalog.hpp"
#include "server/clocks.hpp"
#include "server/settings.hpp"
#include "wake/waiters.hpp"

namespace pulse {
namespace {

// The looks of this transaction.
struct Looks {
  bool any;
  uint64 seen_before;
};
Looks looks;

void note_look(uint64 seen) { looks = {true, looks.any ? Min(looks.seen_before, seen) : seen}; }

}  // namespace

DatabaseState* queue_memory() {
  DatabaseState* database = this_database();
  if (!database || pg_atomic_read_u32(&database->job) == catalog()->job) return database;
  // Two that find it new at once: all that the second takes back is looked at once more.
  pg_atomic_write_u64(&database->reconciled_at, 0);
  pg_atomic_write_u64(&database->parked_seen, 0);
  pg_atomic_write_u32(&database->job, catalog()->job);
  return database;
}

bool is_look_at_all_due() {
  DatabaseState* database = queue_memory();
  return database && pg_atomic_read_u64(&database->reconciled_at) == 0;
}

void mark_queue(DatabaseState* database, int slot) {
  if (database)
    pg_atomic_fetch_or_u64(&database->queue_marks[slot / 64], UINT64CONST(1) << (slot % 64));
}

void note_full_look(DatabaseState* database) {
  if (!database) return;
  note_look(pg_atomic_read_u64(&database->parked_seen));
  auto now = static_cast<uint64>(Min(wall_now(), GetCurrentTimestamp()));
  pg_atomic_write_u64(&database->reconciled_at, now);
  pg_atomic_write_u64(&database->parked_seen, now);
}

FallenDueLook begin_fallen_due_look(DatabaseState* database) {
  uint64 known = pg_atomic_read_u64(&database->parked_seen);
  note_look(known);
  pg_atomic_write_u64(&database->parked_due, kNever);
  auto seen = static_cast<TimestampTz>(known);
  // The server's clock was turned back: what falls due until then was not seen.
  return {known, seen > GetCurrentTimestamp() ? 0 : seen};
}

void end_fallen_due_look(DatabaseState* database, const FallenDueLook& look) {
  // A session that moves its own time (pulse.clock_offset) has seen nothing for the others.
  auto seen = static_cast<uint64>(Min(look.seen, GetCurrentTimestamp()));
  // Another look has moved it: further, or back because what it saw is undone.
  uint64 known = look.known;
  pg_atomic_compare_exchange_u64(&database->parked_seen, &known, seen);
}

void settle_queue_looks(bool is_committed) {
  DatabaseState* database = this_database_if_known();
  if (looks.any && !is_committed && database) {
    auto seen = static_cast<TimestampTz>(looks.seen_before);
    lower_due(&database->parked_seen, seen);
    // All queues need not be looked at again: their parked jobs that are due are seen by this.
    if (lower_due(&database->parked_due, Min(seen, GetCurrentTimestamp()))) signal_waiters();
  }
  looks = {};
}

}  // namespace pulse

// pulse._keep_queue_looks(): what this transaction saw of queues counts, even if it is undone.
PULSE_FUNCTION(pulse_keep_queue_looks) {
  pulse::settle_queue_looks(true);
  PG_RETURN_VOID();
}
