// The row of a running job, found and locked so that its attempt can end.
#pragma once

#include "access/columns.hpp"
#include "access/index_lookup.hpp"
#include "job/job_table.hpp"
#include "server/postgres.hpp"

namespace pulse {

struct RunningJobs {
  JobTable table;
  IndexLookup ids;
  bool keeps_snapshot;  // the transaction has one snapshot for all its statements
};

// Whose attempt may end: that of the claim with this token, any of this worker (kJobWorkerId), or
// with column 0 that of any claim.
struct AttemptOf {
  int column;
  int64 number;
};

// Whether a call waits for the transaction that holds a row or a key.
enum class Patience { kNeverWaits, kWaits };

enum class Hold {
  kHeld,
  kBusy,  // another transaction holds the row or the key
  kOver   // no such attempt runs
};

// Under the snapshot of a transaction that has but one, or else under a new one.
void open_running_jobs(RunningJobs* jobs);
// Under a new snapshot in any transaction: for a call that decides by the token alone.
void open_running_jobs_anew(RunningJobs* jobs);
void close_running_jobs(RunningJobs* jobs);

// Puts the row at hand, in `ids.row`, unlocked. False when no such attempt runs.
bool find_attempt(RunningJobs* jobs, int64 job_id, AttemptOf of);

// Locks the row, which is in `table.locked` then, and its key. A call that waits takes the key
// first, as producers do; one that never waits may have the row first.
Hold hold_attempt(RunningJobs* jobs, int64 job_id, AttemptOf of, Patience patience);

// A row changed since the snapshot: takes a new one, which later looks use. Raises a serialization
// failure in a transaction that keeps its snapshot.
void look_again(RunningJobs* jobs);

// Whether a waiting job has the key, by a look of this moment. The caller has the key's lock.
bool is_key_taken(RunningJobs* jobs, Datum key);

}  // namespace pulse
