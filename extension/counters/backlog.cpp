#include "counters/backlog.hpp"

#include "access/catalog.hpp"
#include "counters/depth_memory.hpp"
#include "server/advisory_lock.hpp"
#include "server/clocks.hpp"
#include "server/compat.hpp"

namespace pulse {
namespace {

// Less than a minute, so that sweeps by the minute add each time.
constexpr int64 kReadingUs = 55 * USECS_PER_SEC;

// The readings of `job` up to a moment: a clock that was set back leaves later readings.
// Requires depths_lock.
int readings_until(const Backlog& backlog, Oid job, TimestampTz moment) {
  Assert(LWLockHeldByMe(depths_lock));
  int count = backlog.job == job ? backlog.count : 0;
  while (count > 0 && backlog.readings[count - 1].at > moment) count--;
  return count;
}

bool is_reading_due() {
  DatabaseDepths* database = depths_of(this_database());
  Oid job = catalog()->job;
  TimestampTz now = wall_now();
  LWLockAcquire(depths_lock, LW_SHARED);
  int count = readings_until(database->backlog, job, now);
  bool is_due = status_of(database, job) == DepthsStatus::kExact &&
                (count == 0 || now - database->backlog.readings[count - 1].at >= kReadingUs);
  LWLockRelease(depths_lock);
  return is_due;
}

}  // namespace

bool begin_backlog_reading() {
  if (RecoveryInProgress() || !has_depths() || !is_reading_due()) return false;
  // Another session may have added a reading before this session got the lock.
  return try_advisory_lock(LockKind::kBacklog, 0, ExclusiveLock) && is_reading_due();
}

void add_backlog_reading(int64 jobs) {
  Assert(is_reading_backlog());
  Backlog* backlog = &depths_of(this_database())->backlog;
  Oid job = catalog()->job;
  TimestampTz now = wall_now();
  LWLockAcquire(depths_lock, LW_EXCLUSIVE);
  int count = readings_until(*backlog, job, now);
  if (count == kBacklogReadings)
    memmove(backlog->readings, backlog->readings + 1, sizeof(BacklogReading) * --count);
  backlog->readings[count] = {now, jobs};
  backlog->count = count + 1;
  backlog->job = job;
  LWLockRelease(depths_lock);
}

bool is_reading_backlog() { return holds_advisory_lock(LockKind::kBacklog, 0, ExclusiveLock); }

int read_backlog(BacklogReading* readings) {
  if (RecoveryInProgress() || !has_depths()) return 0;
  const Backlog& backlog = depths_of(this_database())->backlog;
  Oid job = catalog()->job;
  LWLockAcquire(depths_lock, LW_SHARED);
  int count = readings_until(backlog, job, PG_INT64_MAX);
  memcpy(readings, backlog.readings, sizeof(BacklogReading) * count);
  LWLockRelease(depths_lock);
  return count;
}

}  // namespace pulse

// pulse_internal.begin_backlog_reading()
PULSE_FUNCTION(pulse_begin_backlog_reading) { PG_RETURN_BOOL(pulse::begin_backlog_reading()); }

// pulse_internal.add_backlog_reading(jobs)
PULSE_FUNCTION(pulse_add_backlog_reading) {
  pulse::add_backlog_reading(PG_GETARG_INT64(0));
  PG_RETURN_VOID();
}

// pulse_internal.backlog()
PULSE_FUNCTION(pulse_backlog) {
  pulse::begin_result_rows(fcinfo);
  pulse::BacklogReading readings[pulse::kBacklogReadings];
  int count = pulse::read_backlog(readings);
  auto* results = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
  for (int i = 0; i < count; i++) {
    Datum values[] = {TimestampTzGetDatum(readings[i].at), Int64GetDatum(readings[i].jobs)};
    bool nulls[lengthof(values)] = {};
    tuplestore_putvalues(results->setResult, results->setDesc, values, nulls);
  }
  return static_cast<Datum>(0);
}
