// The depths at one moment.
#include "access/catalog.hpp"
#include "counters/depth_memory.hpp"
#include "server/clocks.hpp"

namespace pulse {
namespace {

int compare_changes(const void* a, const void* b) {
  auto* one = static_cast<const DepthChange*>(a);
  auto* other = static_cast<const DepthChange*>(b);
  if (one->depth != other->depth) return one->depth < other->depth ? -1 : 1;
  return one->kind - other->kind;
}

struct OwnChanges {
  DepthChange* sorted;  // by depth
  int count;
};

OwnChanges sort_changes(const DepthChange* own, int count) {
  OwnChanges changes = {nullptr, count};
  if (count == 0) return changes;
  Size size = sizeof(DepthChange) * count;
  changes.sorted = static_cast<DepthChange*>(MemoryContextAllocHuge(CurrentMemoryContext, size));
  memcpy(changes.sorted, own, size);
  qsort(changes.sorted, count, sizeof(DepthChange), compare_changes);
  return changes;
}

// Adds the changes of a depth by this transaction; without a depth the changes of further names.
void add_own(DepthReading* reading, const OwnChanges& changes, Depth* depth) {
  DepthChange wanted = {};
  wanted.depth = depth;
  wanted.kind = reading->kind;
  int from = 0;
  for (int to = changes.count; from < to;) {
    int middle = from + (to - from) / 2;
    if (compare_changes(&changes.sorted[middle], &wanted) < 0)
      from = middle + 1;
    else
      to = middle;
  }
  for (; from < changes.count && compare_changes(&changes.sorted[from], &wanted) == 0; from++) {
    for (int state = 0; state < kDepthStates; state++)
      reading->jobs[state] += changes.sorted[from].jobs[state];
    reading->run_at.add(changes.sorted[from].run_at);
  }
}

// Negative counts are the trace of a change that was counted elsewhere.
void put_reading(DepthReadings* readings, const DatabaseDepths* database, DepthKind kind,
                 Depth* depth, const DepthCounts& counts, const OwnChanges& own) {
  DepthReading* reading = &readings->readings[readings->count];
  *reading = {};
  reading->kind = kind;
  reading->run_at = range_in(counts, database->current);
  reading->claimed_at = static_cast<TimestampTz>(
      pg_atomic_read_u64(const_cast<pg_atomic_uint64*>(&counts.claimed_at)));
  if (depth) {
    reading->length = depth->length;
    memcpy(reading->name, depth->name, depth->length);
  }
  for (int state = 0; state < kDepthStates; state++)
    reading->jobs[state] = count_in(counts, database->current, state);
  add_own(reading, own, depth);
  bool has_jobs = false;
  for (int64& jobs : reading->jobs) {
    if (jobs < 0) readings->status = DepthsStatus::kDrifted;
    jobs = Max(jobs, 0);
    has_jobs = has_jobs || jobs > 0;
  }
  if (has_jobs) readings->count++;
}

// A sweep that takes a reading of the backlog is no reader, or no table would be without readers.
void note_reading(DatabaseDepths* database) {
  if (is_reading_backlog()) return;
  pg_atomic_write_u64(&database->read_at, static_cast<uint64>(monotonic_us()));
}

void put_readings(DepthReadings* readings, const DatabaseDepths* database, const OwnChanges& own) {
  for (int i = 0; i < kDepthKinds; i++) {
    auto kind = static_cast<DepthKind>(i);
    for_each_depth(kind, [&](Depth* depth) {
      if (depth->key.database == MyDatabaseId)
        put_reading(readings, database, kind, depth, depth->counts, own);
    });
    put_reading(readings, database, kind, nullptr, database->further[kind], own);
  }
}

}  // namespace

DepthsStatus status_of(DatabaseDepths* database, Oid job) {
  Assert(LWLockHeldByMe(depths_lock));
  if (database->job != job) return DepthsStatus::kUnknown;
  if (pg_atomic_read_u64(&database->drift) != database->counted_drift)
    return DepthsStatus::kDrifted;
  // A recount gives depths to names whose jobs are counted with further names.
  bool is_recounted = all_depths->recounted == MyDatabaseId;
  for (const DepthCounts& further : database->further)
    if (is_recounted && !is_zero(further, database->current)) return DepthsStatus::kDrifted;
  return DepthsStatus::kExact;
}

DepthReadings read_depths(const DepthChange* own, int count) {
  DepthReadings readings = {};
  if (RecoveryInProgress() || !has_depths()) return readings;
  DatabaseDepths* database = depths_of(this_database());
  note_reading(database);
  Oid job = catalog()->job;
  note_ended_prepared(entry_number(this_database()));
  OwnChanges changes = sort_changes(own, count);
  LWLockAcquire(depths_lock, LW_EXCLUSIVE);
  readings.status = status_of(database, job);
  readings.counted_at = wall_now();
  if (readings.status != DepthsStatus::kUnknown) {
    Size most = kDepthKinds;
    for (HTAB* table : depth_tables) most += hash_get_num_entries(table);
    readings.readings = static_cast<DepthReading*>(
        MemoryContextAllocHuge(TopTransactionContext, sizeof(DepthReading) * most));
    put_readings(&readings, database, changes);
  }
  LWLockRelease(depths_lock);
  return readings;
}

bool has_counted_depths() {
  if (RecoveryInProgress() || !has_depths()) return false;
  DatabaseDepths* database = depths_of(this_database());
  note_reading(database);
  Oid job = catalog()->job;
  LWLockAcquire(depths_lock, LW_SHARED);
  DepthsStatus status = status_of(database, job);
  LWLockRelease(depths_lock);
  return status != DepthsStatus::kUnknown;
}

}  // namespace pulse
