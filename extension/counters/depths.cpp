#include "counters/depths.hpp"

#include "counters/depth_memory.hpp"

extern "C" {
#include "common/hashfn.h"
}

namespace pulse {
namespace {

constexpr char kLockName[] = "pg_pulse depths";
constexpr const char* kTableNames[kDepthKinds] = {"pg_pulse task depths", "pg_pulse queue depths"};

// The sets of counts to which the commit of this session adds.
struct Adding {
  DatabaseDepths* database;
  bool to_set[2];
};
Adding adding;

Size fixed_size() {
  Size size = sizeof(Depths);
  size = add_size(size, mul_size(prepared_capacity(), sizeof(PreparedDepths)));
  Size list = mul_size(snapshot_capacity(), sizeof(TransactionId));
  return add_size(size, mul_size(2 * kPreloadedDatabases, list));
}

void init_counts(DepthCounts* counts) {
  for (auto& set : counts->jobs)
    for (pg_atomic_uint64& jobs : set) pg_atomic_init_u64(&jobs, 0);
  constexpr RunAtRange kNoJob;
  for (pg_atomic_uint64& soonest : counts->soonest)
    pg_atomic_init_u64(&soonest, static_cast<uint64>(kNoJob.soonest));
  for (pg_atomic_uint64& latest : counts->latest)
    pg_atomic_init_u64(&latest, static_cast<uint64>(kNoJob.latest));
  pg_atomic_init_u64(&counts->claimed_at, 0);
}

// Requires depths_lock exclusively.
void init_depth(Depth* depth, const char* name, int length) {
  Assert(LWLockHeldByMeInMode(depths_lock, LW_EXCLUSIVE));
  depth->length = static_cast<uint8>(length);
  memcpy(depth->name, name, length);
  init_counts(&depth->counts);
  pg_atomic_init_u32(&depth->is_used, 1);
}

void mark_used(Depth* depth) {
  if (pg_atomic_read_u32(&depth->is_used) == 0) pg_atomic_write_u32(&depth->is_used, 1);
}

bool is_same_key(const DepthKey& a, const DepthKey& b) {
  return a.database == b.database && a.name == b.name;
}

// Whether the snapshot of the set shows the transaction, which has committed. Requires
// depths_lock.
bool is_counted_in(const DatabaseDepths* database, int set, FullTransactionId xid) {
  Assert(LWLockHeldByMe(depths_lock));
  const CountedSnapshot& snapshot = database->snapshots[set];
  if (U64FromFullTransactionId(xid) >= snapshot.xmax) return false;
  const TransactionId* in_progress = in_progress_of(database, set);
  for (uint32 i = 0; i < snapshot.in_progress; i++)
    if (in_progress[i] == XidFromFullTransactionId(xid)) return false;
  return true;
}

}  // namespace

Depths* all_depths = nullptr;
LWLock* depths_lock = nullptr;
HTAB* depth_tables[kDepthKinds];

bool is_zero(const DepthCounts& counts, int set) {
  for (int state = 0; state < kDepthStates; state++)
    if (count_in(counts, set, state) != 0) return false;
  return true;
}

void clear_set(DepthCounts* counts, int set) {
  for (pg_atomic_uint64& jobs : counts->jobs[set]) pg_atomic_write_u64(&jobs, 0);
  constexpr RunAtRange kNoJob;
  pg_atomic_write_u64(&counts->soonest[set], static_cast<uint64>(kNoJob.soonest));
  pg_atomic_write_u64(&counts->latest[set], static_cast<uint64>(kNoJob.latest));
}

void widen_range(DepthCounts* counts, int set, const RunAtRange& run_at) {
  uint64 seen = pg_atomic_read_u64(&counts->soonest[set]);
  while (run_at.soonest < static_cast<TimestampTz>(seen))
    if (pg_atomic_compare_exchange_u64(&counts->soonest[set], &seen,
                                       static_cast<uint64>(run_at.soonest)))
      break;
  seen = pg_atomic_read_u64(&counts->latest[set]);
  while (static_cast<TimestampTz>(seen) < run_at.latest)
    if (pg_atomic_compare_exchange_u64(&counts->latest[set], &seen,
                                       static_cast<uint64>(run_at.latest)))
      break;
}

RunAtRange range_in(const DepthCounts& counts, int set) {
  auto* of = const_cast<DepthCounts*>(&counts);
  return {static_cast<TimestampTz>(pg_atomic_read_u64(&of->soonest[set])),
          static_cast<TimestampTz>(pg_atomic_read_u64(&of->latest[set]))};
}

Size depths_size() {
  Size size = fixed_size();
  for (int max : kMaxDepths) size = add_size(size, hash_estimate_size(max, sizeof(Depth)));
  return size;
}

void request_depths_lock() { RequestNamedLWLockTranche(kLockName, 1); }

void create_depths() {
  depths_lock = &GetNamedLWLockTranche(kLockName)->lock;
  all_depths =
      static_cast<Depths*>(shared_area("pg_pulse depths", fixed_size(), [](void* area, Size size) {
        memset(area, 0, size);
        auto* created = static_cast<Depths*>(area);
        pg_atomic_init_u32(&created->process, 0);
        for (DatabaseDepths& database : created->databases) {
          pg_atomic_init_u64(&database.drift, 0);
          pg_atomic_init_u64(&database.next_recount, 0);
          pg_atomic_init_u64(&database.recount_by, 0);
          pg_atomic_init_u64(&database.read_at, 0);
          for (DepthCounts& counts : database.further) init_counts(&counts);
        }
      }));
  HASHCTL shape = {};
  shape.keysize = sizeof(DepthKey);
  shape.entrysize = sizeof(Depth);
  LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
  for (int kind = 0; kind < kDepthKinds; kind++)
    depth_tables[kind] = ShmemInitHash(kTableNames[kind], kMaxDepths[kind], kMaxDepths[kind],
                                       &shape, HASH_ELEM | HASH_BLOBS | HASH_FIXED_SIZE);
  LWLockRelease(AddinShmemInitLock);
}

void reset_depths(int database) {
  if (!all_depths) return;
  LWLockAcquire(depths_lock, LW_EXCLUSIVE);
  all_depths->databases[database].job = InvalidOid;
  all_depths->databases[database].backlog.job = InvalidOid;
  LWLockRelease(depths_lock);
}

bool has_depths() { return all_depths && this_database(); }

DepthKey depth_key(const char* name, int length) {
  return {
      MyDatabaseId, 0,
      DatumGetUInt64(hash_any_extended(reinterpret_cast<const unsigned char*>(name), length, 0))};
}

Depth* depth_of(DepthKind kind, const DepthKey& key, const char* name, int length) {
  if (length > kMaxDepthName) return nullptr;
  DatabaseDepths* database = depths_of(this_database());
  LWLockAcquire(depths_lock, LW_SHARED);
  auto* depth = static_cast<Depth*>(hash_search(depth_tables[kind], &key, HASH_FIND, nullptr));
  if (depth) mark_used(depth);
  bool is_full = database->is_full[kind];
  LWLockRelease(depths_lock);
  if (depth || is_full) return depth;
  bool is_found;
  LWLockAcquire(depths_lock, LW_EXCLUSIVE);
  depth = static_cast<Depth*>(hash_search(depth_tables[kind], &key, HASH_ENTER_NULL, &is_found));
  if (!depth)
    database->is_full[kind] = true;
  else if (!is_found)
    init_depth(depth, name, length);
  else
    mark_used(depth);
  LWLockRelease(depths_lock);
  return depth;
}

bool begin_adding_depths() {
  DatabaseState* database = this_database_if_known();
  if (!all_depths || !database) return false;
  LWLockAcquire(depths_lock, LW_SHARED);
  adding.database = depths_of(database);
  int current = adding.database->current;
  FullTransactionId xid = GetTopFullTransactionIdIfAny();
  adding.to_set[current] = !is_counted_in(adding.database, current, xid);
  adding.to_set[1 - current] =
      all_depths->recounted == MyDatabaseId && !is_counted_in(adding.database, 1 - current, xid);
  return true;
}

void add_depth_change(const DepthChange& change, TimestampTz now) {
  Assert(LWLockHeldByMeInMode(depths_lock, LW_SHARED));
  DepthCounts* counts = &adding.database->further[change.kind];
  if (change.depth && is_same_key(change.depth->key, change.key))
    counts = &change.depth->counts;
  else if (change.depth)
    add_drift();  // a recount freed the depth while the transaction lasted
  for (int set = 0; set < 2; set++) {
    if (!adding.to_set[set]) continue;
    for (int state = 0; state < kDepthStates; state++)
      if (change.jobs[state] != 0)
        pg_atomic_fetch_add_u64(&counts->jobs[set][state], change.jobs[state]);
    widen_range(counts, set, change.run_at);
  }
  if (change.has_claimed) pg_atomic_write_u64(&counts->claimed_at, static_cast<uint64>(now));
}

void add_drift() {
  Assert(LWLockHeldByMeInMode(depths_lock, LW_SHARED));
  pg_atomic_fetch_add_u64(&adding.database->drift, 1);
}

void end_adding_depths() { LWLockRelease(depths_lock); }

}  // namespace pulse
