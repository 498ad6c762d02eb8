// What a transaction will tell the others when it commits: which tasks have work, which queues may
// be promoted, when something falls due. Collected during the transaction, told by the commit
// callback, which cannot raise: it touches shared memory only. No NOTIFY is on the enqueue path.
#pragma once

#include "server/postgres.hpp"
#include "server/shared_memory.hpp"

namespace pulse {

// A job of this task was made ready, due at run_at.
void note_ready(const char* identifier, int length, TimestampTz run_at);

// The earliest run_at per task bit.
struct EarliestRunAt {
  uint64 bits;
  TimestampTz at[kTaskBits];
};

// Of the jobs that this transaction made ready so far.
const EarliestRunAt& made_ready();
TimestampTz own_ready_from(int bit);

// Of the jobs that claims of this transaction have gone past.
const EarliestRunAt& gone_past();

// This job is ready, or parked behind its queue when it has one.
void note_job(const text* identifier, const text* queue_name, TimestampTz run_at);

// A queue may have a free place or a new job.
void note_queue_slot(int slot);

// A parked job falls due then.
void note_parked_due(TimestampTz run_at);

// Somebody is to sweep then.
void note_sweep_due(TimestampTz at);

// This transaction answers the request for a sweep; an abort makes the request anew.
void start_sweep();

// Every waiter is to look again.
void note_all_waiters();

// This worker is to look at its heartbeat.
void note_worker(int64 worker_id);

// A job of this task was claimed: if that is undone, somebody is to look for it again.
void note_claimed(int bit);

// A claim went from there past what is not ready to this transaction, which may be its own doing:
// if that is undone, claims begin there again.
void note_passed(int bit, TimestampTz run_at);

// There is more for this task than its claiming worker took.
void note_more(int bit);

// Takes one mark out of shared memory; an abort puts it back. False when there is none.
bool take_queue_mark(int* slot);

// Whether others are left.
bool queue_marks_remain();

// Puts one mark back at the end of this transaction, whichever it is: its queue was busy.
void return_queue_mark(int slot);

// At the end of the transaction, or of a savepoint that is rolled back. None of them can fail.
void wake_for_commit();
void wake_for_abort();
void wake_for_undone_savepoint(SubTransactionId undone);

}  // namespace pulse
