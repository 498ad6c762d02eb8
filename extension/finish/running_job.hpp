// Finishing: finds and locks the row of a running job, so that the caller can end the attempt.
#pragma once

#include "access/index_lookup.hpp"
#include "job/table.hpp"
#include "server/postgres.hpp"

namespace pulse {

struct RunningJobs {
  JobTable table;
  IndexLookup ids;
  bool keeps_snapshot;  // the transaction has one snapshot for all statements
};

// Whether a call waits for another transaction's lock of the row.
enum class Patience { kNeverWaits, kWaits };

enum class AttemptLock {
  kLocked,
  kBusy,       // another transaction has locked the row
  kNotRunning  // the job runs no attempt with the token
};

// A call that decides by the token alone uses a new snapshot in any transaction.
void open_running_jobs(RunningJobs* jobs, bool keeps_snapshot = IsolationUsesXactSnapshot());
void close_running_jobs(RunningJobs* jobs);

// Finds the row of the attempt with this token, or with NULL of any attempt, and puts it into
// `ids.row`, unlocked. False when no such attempt runs.
bool find_attempt(RunningJobs* jobs, int64 job_id, const NullableDatum& token);

// Locks the row, and puts it into `table.locked`.
AttemptLock lock_attempt(RunningJobs* jobs, int64 job_id, const NullableDatum& token,
                         Patience patience);

// Takes a new snapshot for all further reads, after a row has changed. Raises a serialization
// failure in a transaction that keeps its snapshot.
void renew_snapshot(RunningJobs* jobs);

}  // namespace pulse
