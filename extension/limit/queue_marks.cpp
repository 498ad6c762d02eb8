#include "limit/queue_marks.hpp"

#include "server/clocks.hpp"
#include "server/settings.hpp"
#include "shared/queue_name.hpp"
#include "wake/waiters.hpp"

namespace pulse {
namespace {

// The checks of this transaction. An undone check must be repeated.
struct QueueChecks {
  bool any;
  uint64 seen_before;
};
QueueChecks checks;

void record_check(uint64 seen) {
  checks = {true, checks.any ? Min(checks.seen_before, seen) : seen};
}

}  // namespace

bool is_first_check_due() {
  DatabaseState* database = this_database();
  return database && pg_atomic_read_u32(&database->first_check) != kCheckEnded;
}

bool begin_queue_check(DatabaseState* database) {
  uint32 stage = pg_atomic_read_u32(&database->first_check);
  if (stage == kCheckEnded) return false;
  // If the first check is undone, a scan of all due jobs replaces the check.
  record_check(0);
  if (stage == kCheckBegun) return false;
  auto now = static_cast<uint64>(Min(wall_now(), GetCurrentTimestamp()));
  pg_atomic_write_u64(&database->parked_seen, now);
  pg_atomic_write_u32(&database->next_bucket, 0);
  pg_atomic_write_u32(&database->first_check, kCheckBegun);
  return true;
}

void end_first_check(DatabaseState* database) {
  uint32 begun = kCheckBegun;  // a commit may have asked for another first check since
  pg_atomic_compare_exchange_u32(&database->first_check, &begun, kCheckEnded);
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
  // If another session has changed parked_seen, the other session's value stands: forward, or back
  // after an undone check.
  uint64 known = scan.seen_before;
  pg_atomic_compare_exchange_u64(&database->parked_seen, &known, seen);
}

void end_queue_checks(bool is_committed) {
  DatabaseState* database = this_database_if_known();
  if (checks.any && !is_committed && database) {
    auto seen = static_cast<TimestampTz>(checks.seen_before);
    lower_due(&database->parked_seen, seen);
    // The next scan of due parked jobs finds the queues, so first_check stays.
    if (lower_due(&database->parked_due, Min(seen, GetCurrentTimestamp()))) signal_waiters();
  }
  checks = {};
}

}  // namespace pulse

// pulse_internal.keep_queue_readings(): the queue checks of this transaction count even after a
// rollback.
PULSE_FUNCTION(pulse_keep_queue_readings) {
  pulse::end_queue_checks(true);
  PG_RETURN_VOID();
}
