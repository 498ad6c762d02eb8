// Waiting: sessions that wait for the end of jobs, and the commit that wakes them. Owns the end
// waiters in SharedState.
//
// Invariants:
// - Only the owner of an end-waiter entry writes the ids of the entry. All fields are atomics.
// - No end is missed: a session enters its ids before it reads the jobs, and a commit makes its
//   ends visible before it reads the ids. So the commit sees the ids, or the session sees the end.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// Notes that the commit of this transaction ends the job. A rolled-back savepoint keeps its notes:
// a session woken without an end only reads its jobs again.
void note_ended_job(int64 job_id);

// Called by the commit before it sets promotion marks: adds the parent marks of the ended parents
// that jobs wait for. Cannot fail.
void note_ends_of_parents();

// Copies the parent buckets of the jobs that this transaction has ended; false without any ended
// job.
bool copy_ended_parents(uint64* entries);

// Both are called at the end of the transaction. A commit wakes each session that waits for an
// ended job; where no session waits, the commit reads one counter. Neither function can fail.
void wake_for_ends();
void forget_ends();

// Takes an end-waiter entry in shared memory; false when no entry is free. The end of a failed
// transaction gives the entry back.
bool enter_end_waiting();

// Waits from now on for the first of these ids. With more ids than an entry holds, every end of the
// database wakes the session. True when the call changed the ids of the entry: the caller then
// reads the jobs again.
bool await_ends(const int64* job_ids, int count);
// Gives the end-waiter entry back, if the session has one.
void leave_end_waiting();

}  // namespace pulse
