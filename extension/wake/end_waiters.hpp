// Sessions that wait for the end of jobs, and the commit that wakes them. A session enters its ids
// before it looks at the jobs; a commit makes its ends visible before it looks at the ids. So one
// of the two sees the other, and no end is missed.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// A job of this id ends if this transaction commits. A rolled-back savepoint keeps its notes: a
// session too many looks once more.
void note_ended_job(int64 job_id);

// Called by the commit, before it sets marks: it marks the slots of parents that it ends, where
// jobs wait for them. Cannot fail.
void note_ends_of_parents();

// The slots of the jobs that this transaction has ended; false without any.
bool copy_ended_parents(uint64* slots);

// Called at the end of the transaction. A commit wakes each session that waits for one of its jobs;
// where no session waits, it reads one counter. Neither can fail.
void wake_for_ends();
void forget_ends();

// Takes a slot in shared memory; false when none is free. The end of a transaction that fails
// gives it back.
bool enter_end_waiting();

// Waits from now on for the first of these ids. For more than a slot holds, every end of the
// database wakes. True when this changed what the slot waits for: the caller looks again.
bool await_ends(const int64* job_ids, int count);
void leave_end_waiting();

}  // namespace pulse
