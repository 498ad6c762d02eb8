// When a recount is due, how it begins, and how it ends; and the effect of prepared transactions on
// counts.
#include "access/catalog.hpp"
#include "counters/depth_memory.hpp"
#include "server/clocks.hpp"
#include "server/compat.hpp"

namespace pulse {
namespace {

// A recount is followed by a pause of this many times its processor time, so that recounts take at
// most 1 % of a core. The duration would be no measure: on a busy machine a recount waits for a
// core, and counts that drifted meanwhile would stay inexact for minutes.
constexpr int64 kPauses = 100;
constexpr int64 kLeastPauseUs = USECS_PER_SEC;
// A recount at this interval finds drift that no session has noticed.
constexpr int64 kRecountIntervalUs = 600 * USECS_PER_SEC;
// So long after the last reading sweeps keep the counts right.
constexpr int64 kReadForUs = 1800 * USECS_PER_SEC;

bool has_entry(Oid database) {
  SharedState* state = shared();
  for (int i = 0; i < state->databases; i++)
    if (pg_atomic_read_u32(&state->database[i].oid) == database) return true;
  return false;
}

// A transaction that still refers to the depth finds no key in it. Requires depths_lock
// exclusively.
void free_depth(DepthKind kind, Depth* depth) {
  Assert(LWLockHeldByMeInMode(depths_lock, LW_EXCLUSIVE));
  DepthKey key = depth->key;
  hash_search(depth_tables[kind], &key, HASH_REMOVE, nullptr);
  depth->key = {};
}

bool was_used(Depth* depth) { return pg_atomic_exchange_u32(&depth->is_used, 0) != 0; }

// Frees the depths of this database without a job that no transaction has used since the last
// recount began, and the depths of databases without an entry. The other set is empty afterwards.
void free_unused(DatabaseDepths* database) {
  int other = 1 - database->current;
  for (int kind = 0; kind < kDepthKinds; kind++) {
    clear_set(&database->further[kind], other);
    database->is_full[kind] = false;
    for_each_depth(static_cast<DepthKind>(kind), [&](Depth* depth) {
      bool is_ours = depth->key.database == MyDatabaseId;
      if (is_ours) clear_set(&depth->counts, other);
      if (is_ours ? !was_used(depth) && is_zero(depth->counts, database->current)
                  : !has_entry(depth->key.database))
        free_depth(static_cast<DepthKind>(kind), depth);
    });
  }
}

// A transaction that was prepared before the server started has no entry.
void enter_prepared_before(int database) {
  if (prepared_capacity() == 0) return;
  Snapshot seen = GetLatestSnapshot();
  for (uint32 i = 0; i < seen->xcnt; i++) {
    // The prepared transaction has no process, and is in progress all the same.
    if (BackendXidGetPid(seen->xip[i]) != 0 || !TransactionIdIsInProgress(seen->xip[i])) continue;
    LWLockAcquire(depths_lock, LW_EXCLUSIVE);
    enter_prepared(seen->xip[i], database);
    LWLockRelease(depths_lock);
  }
}

// The ids that the server gives out next follow xmax by less than half of all ids. Requires
// depths_lock exclusively.
void keep_snapshot(DatabaseDepths* database, int set, Snapshot snapshot) {
  Assert(LWLockHeldByMeInMode(depths_lock, LW_EXCLUSIVE));
  FullTransactionId next = ReadNextFullTransactionId();
  uint32 since = XidFromFullTransactionId(next) - snapshot->xmax;
  database->snapshots[set] = {U64FromFullTransactionId(next) - since, snapshot->xcnt};
  // Without such transactions xip is null, which memcpy must not be given.
  if (snapshot->xcnt == 0) return;
  memcpy(in_progress_of(database, set), snapshot->xip, sizeof(TransactionId) * snapshot->xcnt);
}

bool is_past(pg_atomic_uint64* moment, int64 now) {
  return static_cast<int64>(pg_atomic_read_u64(moment)) <= now;
}

bool is_due(DatabaseDepths* database, Oid job, int64 now) {
  if (pg_atomic_read_u32(&all_depths->process) != 0 || !is_past(&database->next_recount, now))
    return false;
  LWLockAcquire(depths_lock, LW_SHARED);
  DepthsStatus status = status_of(database, job);
  LWLockRelease(depths_lock);
  return status != DepthsStatus::kExact || is_past(&database->recount_by, now);
}

void start_process() {
  BackgroundWorker worker = {};
  snprintf(worker.bgw_name, BGW_MAXLEN, "pg_pulse recounter");
  snprintf(worker.bgw_type, BGW_MAXLEN, "pg_pulse recounter");
  snprintf(worker.bgw_library_name, BGW_MAXLEN, "pg_pulse");
  snprintf(worker.bgw_function_name, BGW_MAXLEN, "pulse_recounter_main");
  worker.bgw_flags =
      BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION | kInterruptibleProcess;
  worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
  worker.bgw_restart_time = BGW_NEVER_RESTART;
  worker.bgw_main_arg = ObjectIdGetDatum(MyDatabaseId);
  (void)RegisterDynamicBackgroundWorker(&worker, nullptr);
}

}  // namespace

void enter_prepared(TransactionId xid, int database) {
  Assert(LWLockHeldByMeInMode(depths_lock, LW_EXCLUSIVE));
  PreparedDepths* free = nullptr;
  for (int i = 0; i < prepared_capacity(); i++) {
    PreparedDepths* entry = &prepared_depths()[i];
    if (entry->xid == xid) return;
    if (!TransactionIdIsValid(entry->xid)) free = entry;
  }
  if (free)
    *free = {xid, database};
  else
    pg_atomic_fetch_add_u64(&all_depths->databases[database].drift, 1);
}

void note_ended_prepared(int database) {
  for (int i = 0; i < prepared_capacity(); i++) {
    PreparedDepths* entry = &prepared_depths()[i];
    LWLockAcquire(depths_lock, LW_SHARED);
    TransactionId xid = entry->database == database ? entry->xid : InvalidTransactionId;
    LWLockRelease(depths_lock);
    if (!TransactionIdIsValid(xid) || TransactionIdIsInProgress(xid)) continue;
    LWLockAcquire(depths_lock, LW_EXCLUSIVE);
    if (entry->xid == xid) {
      entry->xid = InvalidTransactionId;
      pg_atomic_fetch_add_u64(&all_depths->databases[database].drift, 1);
    }
    LWLockRelease(depths_lock);
  }
}

void enter_prepared_depths(TransactionId xid) {
  DatabaseState* database = this_database_if_known();
  if (!all_depths || !database) return;
  LWLockAcquire(depths_lock, LW_EXCLUSIVE);
  enter_prepared(xid, entry_number(database));
  LWLockRelease(depths_lock);
}

bool recount_if_due() {
  if (RecoveryInProgress() || !has_depths()) return false;
  DatabaseDepths* database = depths_of(this_database());
  Oid job = catalog()->job;
  note_ended_prepared(entry_number(this_database()));
  int64 now = monotonic_us();
  uint64 due = pg_atomic_read_u64(&database->next_recount);
  // Of the sessions that find a recount due, a single session starts the process.
  if (!is_due(database, job, now) ||
      !pg_atomic_compare_exchange_u64(&database->next_recount, &due,
                                      static_cast<uint64>(now + kLeastPauseUs)))
    return false;
  start_process();
  return true;
}

bool recount_if_read() {
  if (!has_depths()) return false;
  auto read_at = static_cast<int64>(pg_atomic_read_u64(&depths_of(this_database())->read_at));
  return read_at != 0 && monotonic_us() - read_at < kReadForUs && recount_if_due();
}

pg_atomic_uint32* recounting_process() { return &all_depths->process; }

Snapshot begin_recount() {
  DatabaseState* state = this_database();
  if (!all_depths || !state) return nullptr;
  DatabaseDepths* database = depths_of(state);
  note_ended_prepared(entry_number(state));
  enter_prepared_before(entry_number(state));
  LWLockAcquire(depths_lock, LW_EXCLUSIVE);
  all_depths->recounted = InvalidOid;
  free_unused(database);
  Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
  bool is_kept = snapshot->xcnt <= snapshot_capacity();
  if (is_kept) {
    keep_snapshot(database, 1 - database->current, snapshot);
    database->begun_drift = pg_atomic_read_u64(&database->drift);
    all_depths->recounted = MyDatabaseId;
  }
  LWLockRelease(depths_lock);
  if (is_kept) return snapshot;
  UnregisterSnapshot(snapshot);
  return nullptr;
}

void add_recounted(DepthKind kind, Depth* depth, DepthState state, TimestampTz run_at) {
  DatabaseDepths* database = depths_of(this_database());
  DepthCounts* counts = depth ? &depth->counts : &database->further[kind];
  int other = 1 - database->current;
  pg_atomic_fetch_add_u64(&counts->jobs[other][state], 1);
  if (state != kRunning) widen_range(counts, other, {run_at, run_at});
}

void end_recount(Oid job, int64 used_us) {
  DatabaseDepths* database = depths_of(this_database());
  LWLockAcquire(depths_lock, LW_EXCLUSIVE);
  database->current = 1 - database->current;
  database->job = job;
  database->counted_drift = database->begun_drift;
  all_depths->recounted = InvalidOid;
  LWLockRelease(depths_lock);
  int64 now = monotonic_us();
  int64 pause = Max(used_us * kPauses, kLeastPauseUs);
  pg_atomic_write_u64(&database->next_recount, static_cast<uint64>(now + pause));
  pg_atomic_write_u64(&database->recount_by,
                      static_cast<uint64>(now + Max(pause, kRecountIntervalUs)));
}

}  // namespace pulse
