// Waking: the wake-ups that a transaction sends at its end, for tasks with ready jobs, queues to
// promote, and due times. Functions note wake-ups during the transaction. The commit callback sends
// all noted wake-ups, must not raise, and touches shared memory only. Adding a job uses no NOTIFY.
#pragma once

#include "server/postgres.hpp"
#include "shared/front.hpp"
#include "shared/memory.hpp"
#include "shared/queue_name.hpp"

namespace pulse {

// A job of this task became ready, due at run_at.
void note_ready(const text* identifier, TimestampTz run_at);

// The jobs that this transaction made ready so far.
const EarliestRunAt& made_ready();
TimestampTz own_ready_from(int bit);

// The jobs over which claims of this transaction raised low-water marks.
const EarliestRunAt& gone_past();

// The jobs that this transaction parked so far.
const FirstParked& made_parked();

// A job of a queue with this bucket was parked.
void note_parked(int queue_bucket, ParkedKey key);

// This job is ready, or is parked if the job has a queue. The least priority stands for an unknown
// priority.
void note_job(const text* identifier, const text* queue_name, TimestampTz run_at,
              int16 priority = PG_INT16_MIN);

// A queue may have a free place or a new job.
void note_queue(uint64 hash);

// This transaction has promoted the queue, and keeps the queue's lock to the end. So the commit
// need not set the queue mark for jobs noted before.
void note_promoted(uint64 hash);

// A job of this queue leaves its place, if the job had a place.
void note_place_freed(const QueuePlace& place);

// A parked job is due at run_at.
void note_parked_due(TimestampTz run_at);

// A sweep has work at that time.
void note_sweep(TimestampTz at);

// This transaction claimed a job of this task bit; if undone, waiters must claim again.
void note_claimed(int bit);

// A claim raised a low-water mark from `run_at` over entries that are not ready for this
// transaction, perhaps by the transaction's own changes. An undo lowers the low-water mark to
// `run_at`.
void note_passed(int bit, TimestampTz run_at);

// The task has more ready jobs than this claim took.
void note_more(int bit);

// A job waits for this parent: the commit sets the parent mark of the parent's bucket. False
// without shared memory.
bool note_parent(int64 job_id);

// This transaction ends a job. If jobs wait for this parent, claims of the same transaction find
// the waiting jobs too.
void note_end_of_parent(DatabaseState* database, int64 job_id);

// Called by the commit: jobs wait for parents of these buckets, and the transaction ends such a
// parent. Cannot fail.
void note_ended_parents(int word, uint64 buckets);

// The settings of a level, or of all members of a level, change: claims check the queues that wait
// for a level, or every queue.
void note_level_settings(bool of_members);

// Takes the next promotion mark, of shared memory or of this transaction; an abort sets the
// promotion mark again. False when none is set.
bool take_promotion_mark(int* bucket);
// The next call, of whichever session, begins with this promotion mark.
void search_marks_from(int bucket);

// Takes a level group with a freed place and waiting queues; an abort returns the group. False when
// no group is left.
bool take_freed_level(int* group);

// Returns the level group at the end of this transaction, committed or not: queues of the group are
// still to be checked.
void return_freed_level(int group);

// This transaction ends the wait of a queue for a level or in a ring, and checks the queue. An
// abort sets the queue mark, and sets these rings in `freed_levels`.
void note_wait_taken(int bucket, uint64 rings = 0);

// True when a promotion mark is still set, or queues wait for a level in which a place came free.
bool promotion_marks_remain();

// Sets the promotion mark again at the end of this transaction, committed or not, because the queue
// or parent has work left. `is_beyond_places`: the call had no places left for the queue. Then a
// worker whose claim missed the queue mark meanwhile claims again before the worker waits. A queue
// that is busy is no such news: workers that cannot promote the queue would claim again for ever.
void return_promotion_mark(int bucket, bool is_beyond_places = false);

// For a transaction that is prepared: the news of its commit. Neither function can fail.
struct PreparedNotes;
bool has_notes();
void copy_notes(PreparedNotes* notes);

// Called at the end of the transaction, or of a rolled-back savepoint. None of these functions can
// fail.
void wake_for_commit();
void wake_for_abort();
void wake_for_undone_savepoint(SubTransactionId undone);

}  // namespace pulse
