#include "queue_memory.hpp"

#include "catalog.hpp"
#include "settings.hpp"
#include "waiters.hpp"

namespace pulse {
namespace {

// The looks of this transaction.
struct Looks {
  bool any;
  bool any_full;
  uint64 seen_before;
};
Looks looks;

void note_look(DatabaseState* database, bool is_full) {
  uint64 seen = pg_atomic_read_u64(&database->parked_seen);
  looks = {true, looks.any_full || is_full, looks.any ? Min(looks.seen_before, seen) : seen};
}

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
  if (database) pg_atomic_fetch_or_u64(&database->marks[slot / 64], UINT64CONST(1) << (slot % 64));
}

void note_full_look(DatabaseState* database) {
  if (!database) return;
  note_look(database, true);
  auto now = static_cast<uint64>(Min(wall_now(), GetCurrentTimestamp()));
  pg_atomic_write_u64(&database->reconciled_at, now);
  pg_atomic_write_u64(&database->parked_seen, now);
}

TimestampTz begin_fallen_due_look(DatabaseState* database) {
  note_look(database, false);
  pg_atomic_write_u64(&database->parked_due, kNever);
  auto seen = static_cast<TimestampTz>(pg_atomic_read_u64(&database->parked_seen));
  // The server's clock was turned back: what falls due until then was not seen.
  return seen > GetCurrentTimestamp() ? 0 : seen;
}

void end_fallen_due_look(DatabaseState* database, TimestampTz seen) {
  // A session that moves its own time (pulse.clock_offset) has seen nothing for the others.
  seen = Min(seen, GetCurrentTimestamp());
  pg_atomic_write_u64(&database->parked_seen, static_cast<uint64>(seen));
}

void settle_queue_looks(bool is_committed) {
  DatabaseState* database = this_database_if_known();
  if (looks.any && !is_committed && database) {
    if (looks.any_full) pg_atomic_write_u64(&database->reconciled_at, 0);
    auto seen = static_cast<TimestampTz>(looks.seen_before);
    lower_due(&database->parked_seen, seen);
    if (lower_due(&database->parked_due, seen)) nudge_waiters();
  }
  looks = {};
}

}  // namespace pulse
