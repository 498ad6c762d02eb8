// Depths: how many jobs of each task and of each queue are ready, parked and running, in shared
// memory of a preloaded server. Commits add their changes (noted_depths.hpp). A recount reads the
// whole table and replaces the counts (background/recounter.cpp).
//
// Invariants, under the lock of depths:
// - A depth has two sets of counts. Readers see the current set. During the recount of a database,
//   commits of the database add to both sets and the recount fills the other set; the end of the
//   recount swaps the sets.
// - Either set keeps the changes that its snapshot does not show. The recount takes and publishes
//   the snapshot under the exclusive lock. A commit adds its changes under the shared lock, when
//   other transactions already see them, and to a set only if the set's snapshot does not show the
//   transaction. The snapshot shows a commit that added before the recount got the lock, so the
//   scan counts its rows. A later commit searches the snapshot for itself, however late it comes:
//   also a commit that the snapshot shows, and that gets the lock only after the sets were swapped.
//   No change is lost or counted twice.
// - A name keeps its depth from one recount to the next: only the beginning of a recount frees
//   depths, those without jobs that no transaction has used since the last recount began. Once a
//   name found no free depth, each new name is counted with further names until the next recount.
// - `drift` grows with every change that no commit can add. The counts are exact if the last
//   recount began after the last such change.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

enum DepthKind : uint8 { kTaskDepth, kQueueDepth, kDepthKinds };
// Parked jobs wait behind their queue, or for other jobs (kAfterOthers).
enum DepthState : uint8 { kReady, kParked, kAfterOthers, kRunning, kDepthStates };

// Depths with a name, of all databases.
constexpr int kMaxDepths[kDepthKinds] = {4096, 65536};
// A longer name is counted with further names. (A name has at most 128 characters.)
constexpr int kMaxDepthName = 128;

struct DepthKey {
  Oid database;
  uint32 padding;  // 0, because the hash table compares every byte
  uint64 name;     // hash of the name
};

// Guard of all fields: atomic. Commits add under depths_lock, shared; the recounter adds to the set
// that no reader sees.
struct DepthCounts {
  pg_atomic_uint64 jobs[2][kDepthStates];
  pg_atomic_uint64 soonest[2];  // no waiting job has an earlier run_at
  pg_atomic_uint64 latest[2];   // no waiting job has a later run_at
  pg_atomic_uint64 claimed_at;  // when the last claim committed; 0: not known
};

struct Depth {
  // Guard of key, length and name: depths_lock for writes; constant until a recount frees the
  // depth.
  DepthKey key;
  uint8 length;
  char name[kMaxDepthName];
  // A transaction has found the depth since the last recount began. Guard: atomic.
  pg_atomic_uint32 is_used;
  DepthCounts counts;
};

// The first and the last run_at of waiting jobs.
struct RunAtRange {
  TimestampTz soonest = PG_INT64_MAX;  // without a job
  TimestampTz latest = PG_INT64_MIN;   // without a job

  void add(const RunAtRange& other) {
    soonest = Min(soonest, other.soonest);
    latest = Max(latest, other.latest);
  }
  void add(TimestampTz run_at) { add({run_at, run_at}); }
};

// The change of one depth by a transaction.
struct DepthChange {
  Depth* depth;  // NULL: of further names
  DepthKey key;  // tells whether the depth still is of that name
  DepthKind kind;
  bool has_claimed;
  int32 jobs[kDepthStates];
  RunAtRange run_at;  // of the waiting jobs that were added
};

// The counts of one name; without a name the counts of all further names.
struct DepthReading {
  DepthKind kind;
  uint8 length;
  char name[kMaxDepthName];
  int64 jobs[kDepthStates];
  RunAtRange run_at;  // no waiting job has a run_at outside
  TimestampTz claimed_at;
};

enum class DepthsStatus {
  kUnknown,  // not counted here, or not yet
  kDrifted,  // changes are missing, until the next recount
  kExact,
};

struct DepthReadings {
  DepthsStatus status;
  TimestampTz counted_at;
  int count;
  DepthReading* readings;
};

// Shared memory; only in a server that preloads the library.
Size depths_size();
void request_depths_lock();
void create_depths();

// Forgets the counts and the backlog of an entry that another database takes over: the job tables
// of two copies of a database have the same oid. Safe in callbacks.
void reset_depths(int database);

// True when this server counts and this database has a place in shared memory.
bool has_depths();

// Finds the depth of a name, or takes one. NULL: the name is counted with further names.
Depth* depth_of(DepthKind kind, const DepthKey& key, const char* name, int length);
DepthKey depth_key(const char* name, int length);

// A commit adds its changes between begin and end, which share depths_lock. None of these
// calls can fail.
bool begin_adding_depths();
void add_depth_change(const DepthChange& change, TimestampTz now);
void add_drift();
void end_adding_depths();

// The prepared transaction changes depths, which no commit will add. Cannot fail.
void enter_prepared_depths(TransactionId xid);

// All depths of this database at one moment, in the memory of the transaction, with changes that it
// has not committed.
DepthReadings read_depths(const DepthChange* own, int count);

// Whether all jobs of this database were counted since the server started.
bool has_counted_depths();

// Starts the process that recounts this database, if a recount is due. True when the call has
// started it.
bool recount_if_due();

// Starts a recount for a sweep: only where a session has read the counts lately, so that a server
// of many databases counts only tables with readers.
bool recount_if_read();

// For the recounting process. begin_recount() returns a registered snapshot of the table to count,
// or NULL while the process of another database recounts.
Snapshot begin_recount();
void add_recounted(DepthKind kind, Depth* depth, DepthState state, TimestampTz run_at);
void end_recount(Oid job, int64 used_us);
pg_atomic_uint32* recounting_process();

}  // namespace pulse
