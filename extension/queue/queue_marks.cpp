#include "queue/queue_marks.hpp"

#include "server/clocks.hpp"
#include "server/settings.hpp"
#include "wake/waiters.hpp"

namespace pulse {
namespace {

// The checks that this transaction made; an undone check must be repeated.
struct QueueChecks {
  bool any;
  uint64 seen_before;
};
QueueChecks checks;

void record_check(uint64 seen) {
  checks = {true, checks.any ? Min(checks.seen_before, seen) : seen};
}

}  // namespace

bool is_look_at_all_due() {
  DatabaseState* database = this_database();
  return database && pg_atomic_read_u64(&database->reconciled_at) == 0;
}

void mark_queue(DatabaseState* database, int slot) {
  pg_atomic_fetch_or_u64(&database->queue_marks[slot / 64], UINT64CONST(1) << (slot % 64));
}

void record_full_check(DatabaseState* database) {
  if (!database) return;
  record_check(pg_atomic_read_u64(&database->parked_seen));
  auto now = static_cast<uint64>(Min(wall_now(), GetCurrentTimestamp()));
  pg_atomic_write_u64(&database->reconciled_at, now);
  pg_atomic_write_u64(&database->parked_seen, now);
}

FallenDueScan begin_fallen_due_scan(DatabaseState* database) {
  uint64 known = pg_atomic_read_u64(&database->parked_seen);
  record_check(known);
  pg_atomic_write_u64(&database->parked_due, kNever);
  auto seen = static_cast<TimestampTz>(known);
  // The server's clock was set back, so jobs that became due until then were not seen.
  return {known, seen > GetCurrentTimestamp() ? 0 : seen};
}

void end_fallen_due_scan(DatabaseState* database, const FallenDueScan& scan) {
  // A session under pulse.clock_offset sees the future, which must not count for other sessions.
  auto seen = static_cast<uint64>(Min(scan.seen_until, GetCurrentTimestamp()));
  // If another session has changed parked_seen, forward or back after an undone check, its value
  // stands.
  uint64 known = scan.seen_before;
  pg_atomic_compare_exchange_u64(&database->parked_seen, &known, seen);
}

void end_queue_checks(bool is_committed) {
  DatabaseState* database = this_database_if_known();
  if (checks.any && !is_committed && database) {
    auto seen = static_cast<TimestampTz>(checks.seen_before);
    lower_due(&database->parked_seen, seen);
    // The next scan of due parked jobs finds their queues, so reconciled_at stays.
    if (lower_due(&database->parked_due, Min(seen, GetCurrentTimestamp()))) signal_waiters();
  }
  checks = {};
}

}  // namespace pulse

// pulse_internal.keep_queue_looks(): the queue checks of this transaction count even if it is
// rolled back.
PULSE_FUNCTION(pulse_keep_queue_looks) {
  pulse::end_queue_checks(true);
  PG_RETURN_VOID();
}
