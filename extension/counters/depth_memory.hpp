// The layout of depths in shared memory: for the files that share it. depths.hpp has the
// invariants.
#pragma once

#include "counters/backlog.hpp"
#include "counters/depths.hpp"
#include "shared/memory.hpp"

extern "C" {
#include "access/twophase.h"
#include "utils/hsearch.h"
}

namespace pulse {

// The transactions that the snapshot of a set of counts does not show: transactions from xmax on,
// and transactions in progress for the snapshot. Guard: depths_lock.
struct CountedSnapshot {
  uint64 xmax;  // with the epoch; 0: the set was not counted
  uint32 in_progress;
};

// Guard of the fields before `drift`: depths_lock.
struct DatabaseDepths {
  Oid job;        // the counted table; InvalidOid: none yet
  uint8 current;  // the set of counts that readers see
  bool is_full[kDepthKinds];
  CountedSnapshot snapshots[2];  // of either set
  uint64 counted_drift;          // `drift` when the last recount began
  uint64 begun_drift;            // when the recount in progress began
  Backlog backlog;
  pg_atomic_uint64 drift;         // guard from here on: atomic
  pg_atomic_uint64 next_recount;  // monotonic clock: not before
  pg_atomic_uint64 recount_by;    // monotonic clock: at the latest
  pg_atomic_uint64 read_at;       // monotonic clock: when a session last read; 0: never
  DepthCounts further[kDepthKinds];
};

// A prepared transaction that changes depths. Guard: depths_lock.
struct PreparedDepths {
  TransactionId xid;  // InvalidTransactionId: free
  int database;       // number of the database's entry
};

struct Depths {
  // The process that recounts: index into ProcGlobal->allProcs, plus one; 0: none. Guard: atomic.
  pg_atomic_uint32 process;
  Oid recounted;  // the database of the recount. Guard: depths_lock
  DatabaseDepths databases[kPreloadedDatabases];
  // followed by PreparedDepths[prepared_capacity()], and for either set of each database by
  // TransactionId[snapshot_capacity()]. Guard: depths_lock
};

extern Depths* all_depths;  // NULL: this server does not count
extern LWLock* depths_lock;
extern HTAB* depth_tables[kDepthKinds];

inline int prepared_capacity() { return 2 * max_prepared_xacts; }

// More transactions than can be in progress; a snapshot with more transactions begins no recount.
inline uint32 snapshot_capacity() {
  return static_cast<uint32>(MaxConnections + max_worker_processes + max_prepared_xacts) + 256;
}

inline PreparedDepths* prepared_depths() {
  return reinterpret_cast<PreparedDepths*>(all_depths + 1);
}

// The transactions that were in progress for the snapshot of a set.
inline TransactionId* in_progress_of(const DatabaseDepths* database, int set) {
  auto* lists = reinterpret_cast<TransactionId*>(prepared_depths() + prepared_capacity());
  return lists + ((database - all_depths->databases) * 2 + set) * snapshot_capacity();
}

inline DatabaseDepths* depths_of(const DatabaseState* database) {
  return &all_depths->databases[entry_number(database)];
}

inline int64 count_in(const DepthCounts& counts, int set, int state) {
  return static_cast<int64>(
      pg_atomic_read_u64(const_cast<pg_atomic_uint64*>(&counts.jobs[set][state])));
}

// No job is counted in the set.
bool is_zero(const DepthCounts& counts, int set);

// Widens the range of run_at of waiting jobs in a set.
void widen_range(DepthCounts* counts, int set, const RunAtRange& run_at);

RunAtRange range_in(const DepthCounts& counts, int set);

// Empties a set of counts.
void clear_set(DepthCounts* counts, int set);

// Calls use(depth) with each depth of all databases; `use` may free the depth. Requires depths_lock
// exclusively.
template <typename Use>
void for_each_depth(DepthKind kind, Use use) {
  Assert(LWLockHeldByMeInMode(depths_lock, LW_EXCLUSIVE));
  HASH_SEQ_STATUS at;
  hash_seq_init(&at, depth_tables[kind]);
  while (auto* depth = static_cast<Depth*>(hash_seq_search(&at))) use(depth);
}

// How the counts of `job`, the present table of this database, are. Requires depths_lock.
DepthsStatus status_of(DatabaseDepths* database, Oid job);

// Adds drift for a prepared transaction of this database that has ended: no count has the
// transaction's changes.
void note_ended_prepared(int database);

// The prepared transaction changes depths of the database. Requires depths_lock exclusively.
void enter_prepared(TransactionId xid, int database);

}  // namespace pulse
