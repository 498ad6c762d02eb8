// The state of one call of pulse.claim: claim.cpp hands jobs out, task_cursors.cpp walks the tasks,
// reserved_range.cpp takes rows in ranges, and last_chance.cpp isolates poison suspects.
#pragma once

#include "server/postgres.hpp"

#include "claim/claimed_job.hpp"
#include "claim/claiming_worker.hpp"
#include "claim/claims_in_progress.hpp"
#include "claim/due_scan.hpp"
#include "claim/low_water_mark.hpp"
#include "job/job_table.hpp"
#include "job/task_settings.hpp"
#include "queue/places.hpp"
#include "queue/rate.hpp"
#include "server/shared_memory.hpp"
#include "wake/wait_for_job.hpp"

namespace pulse {

// A cursor over the due jobs of one task.
struct TaskCursor {
  DueScan scan;
  Datum identifier;
  int bit;
  bool is_open;  // false: a candidate, whose first job comes no earlier than the order in `scan`
  bool due;
  bool settings_read;
  TaskSettings settings;
};

struct Claim {
  ClaimingWorker worker;
  int max_jobs;
  int start_jobs;
  Datum* forbidden_flags;
  int forbidden_count;
  JobTable table;
  Relation index;
  List* cursors;  // of TaskCursor
  int claimed;
  TransactionId blocking_xid;  // the last transaction found to have locked a row
  TransactionId checked_xid;   // the last one whose claims in progress were read
  ClaimInProgress claim_in_progress;
  MarkBucket* marks;  // one per task bit; NULL: no low-water marks
  uint64 mark_generation[kTaskBits];
  bool stays_in_place;  // plain jobs are claimed in place (in_place_claim.hpp)
  int64* in_place_ids;  // the jobs claimed in place
  int in_place_count;
  bool continues_round;       // it looks at the names that the last claim left (every_task.cpp)
  bool leaves_names;          // it leaves names to the next claim
  bool has_lowered_due;       // it has recorded an earlier due time
  bool closed;                // the claim takes no further job
  bool is_job_held;           // a transaction that is no claim holds a job the claim could take
  bool poison_suspect_waits;  // a poison suspect waits for an idle worker
  MemoryContext row_context;  // reset for each row
  KnownLevel* levels;         // in which this claim promoted jobs
  PlacedJobs placed;          // in queues that this claim promoted
  int next_placed;            // the first of them that is still to be handed out or opened
  ClaimStamp stamp;           // its token is 0 until the claim takes a job
  ReturnSetInfo* results;
};

// Opens a cursor for each task that the worker serves, or finds the candidates among all.
void open_cursors(Claim* claim);

// The cursor of a task that the worker serves. It may have no job.
TaskCursor* cursor_of(Claim* claim, Datum identifier);

// Sets all but the position of a cursor.
void init_cursor(Claim* claim, TaskCursor* cursor, Datum identifier);

// Adds a task whose first job comes no earlier than `from`. Its cursor opens when it comes first.
void add_candidate(Claim* claim, const TaskCursor& cursor, JobOrder from);

// Adds the tasks with ready jobs among the next names.
void add_every_task(Claim* claim);

// What the claim leaves, seen together with the earlier claims of its round.
WorkLeft left_of_round(const Claim* claim, WorkLeft left);

// Records when a job of the task bit falls due.
void record_next_due(Claim* claim, int bit, TimestampTz run_at);

// The cursor whose job comes first; NULL when no cursor has a job.
TaskCursor* best_cursor(Claim* claim);

// Whether a placed job comes before that of the best cursor, or NULL.
bool is_placed_first(const Claim* claim, const TaskCursor* cursor);

// Records when the next job of the task falls due, and whether it has more jobs.
void close_cursor(Claim* claim, TaskCursor* cursor);

// Closes all cursors. Waiters learn of due times at once, because this worker may be busy by then.
void close_cursors(Claim* claim);

// The settings of the cursor's task, read once per call.
const TaskSettings& settings_of(Claim* claim, TaskCursor* cursor);

// Whether the worker may get the cursor's row, if the claim takes `in_view` more jobs before it.
enum class Fit {
  kGood,
  kIsolated,   // it is a poison suspect
  kMustStart,  // it may not wait at the worker, which has no free slot for it
  kNot         // locked, or has a forbidden flag
};
Fit fit_of_row(Claim* claim, TaskCursor* cursor, int in_view);

// Does, before the claim locks a row, what may wait for another session.
void prepare_to_take(Claim* claim, TaskCursor* cursor);

// Locks this row of the cursor, claims it for the worker and adds it to the result. False when
// another transaction has locked or changed it.
bool take_row(Claim* claim, TaskCursor* cursor, const ItemPointerData& tid);

// Continues after the rows of other claims if the current row is theirs. True when it was.
bool skip_claimed(Claim* claim, TaskCursor* cursor);

// Takes a range of the best cursor. True when the cursor has moved; false when the claim must
// consider the current row by itself.
bool take_range(Claim* claim, TaskCursor* cursor);

// Called before the claim takes a single row, so that other claims may skip it.
void publish_walk(TaskCursor* cursor);

// Whether the job has crashed before, and one more crash would quarantine it.
bool is_poison_suspect(Claim* claim, TaskCursor* cursor);

// Gives a poison suspect to a worker that runs no job, as the only job of the claim.
void consider_poison_suspect(Claim* claim, TaskCursor* cursor);

// A worker with an isolated job gets no other job. It gets the isolated job once it is idle. The
// claim clears an isolated job that has ended or is with another worker.
void check_isolated_job(Claim* claim);

}  // namespace pulse
