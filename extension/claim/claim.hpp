// Claiming: the state of one call of pulse.claim. claim.cpp hands jobs out, task_cursors.cpp walks
// the tasks, reserved_range.cpp takes rows in ranges, and last_chance.cpp isolates poison suspects.
#pragma once

#include "server/postgres.hpp"

#include "claim/claimed_job.hpp"
#include "claim/claiming_worker.hpp"
#include "claim/claims_in_progress.hpp"
#include "claim/due_scan.hpp"
#include "claim/low_water_mark.hpp"
#include "job/table.hpp"
#include "job/task_settings.hpp"
#include "limit/rate.hpp"
#include "queue/places.hpp"
#include "shared/memory.hpp"
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
  TransactionId checked_xid;   // the last transaction whose claims in progress were read
  ClaimInProgress claim_in_progress;
  LowWaterBucket* low_water;  // one per task bit; NULL: no low-water marks
  uint64 low_water_generation[kTaskBits];
  bool stays_in_place;  // plain jobs are claimed in place (in_place_claim.hpp)
  int64* in_place_ids;  // the jobs claimed in place
  int in_place_count;
  bool continues_round;  // the claim reads the names that the last claim left (every_task.cpp)
  bool leaves_names;     // the claim leaves names to the next claim
  bool has_lowered_due;  // the claim has recorded an earlier due time
  bool closed;           // the claim takes no further job
  // A transaction without a claim in progress holds a job that this claim could take.
  bool is_job_held;
  bool poison_suspect_waits;  // a poison suspect waits for an idle worker
  MemoryContext row_context;  // reset for each row
  KnownLevel* levels;         // in which this claim promoted jobs
  PlacedJobs placed;          // in queues that this claim promoted
  int next_placed;   // the first of `placed` that the claim has not handed out or opened yet
  ClaimStamp stamp;  // the token is 0 until the claim takes a job
  ReturnSetInfo* results;
};

// Opens a cursor for each task that the worker serves. For a worker that serves every task, finds
// the candidates among all tasks.
void open_cursors(Claim* claim);

// The cursor of a task that the worker serves. The cursor may have no job.
TaskCursor* cursor_of(Claim* claim, Datum identifier);

// Sets all but the position of a cursor.
void init_cursor(Claim* claim, TaskCursor* cursor, Datum identifier);

// Adds a task whose first job comes no earlier than `from`. The cursor opens when no other cursor
// has an earlier job.
void add_candidate(Claim* claim, const TaskCursor& cursor, JobOrder from);

// Adds the tasks with ready jobs among the next names.
void add_every_task(Claim* claim);

// The work that the claim leaves, together with the work that the earlier claims of its round left.
WorkLeft left_of_round(const Claim* claim, WorkLeft left);

// Records when a job of the task bit falls due.
void record_next_due(Claim* claim, int bit, TimestampTz run_at);

// The cursor whose job comes first; NULL when no cursor has a job.
TaskCursor* best_cursor(Claim* claim);

// Whether a placed job comes before the job of the best cursor (NULL: no cursor has a job).
bool is_placed_first(const Claim* claim, const TaskCursor* cursor);

// Records when the next job of the task falls due, and whether the task has more jobs.
void close_cursor(Claim* claim, TaskCursor* cursor);

// Closes all cursors. Waiters learn of due times at once, because this worker may be busy at the
// due time.
void close_cursors(Claim* claim);

// The settings of the cursor's task, read once per call.
const TaskSettings& settings_of(Claim* claim, TaskCursor* cursor);

// Whether the worker may get the cursor's row, if the claim takes `in_view` more jobs before this
// row.
enum class Fit {
  kGood,
  kIsolated,   // the job is a poison suspect
  kMustStart,  // the job may not wait at the worker, and the worker has no free slot for the job
  kNot         // locked, or has a forbidden flag
};
Fit fit_of_row(Claim* claim, TaskCursor* cursor, int in_view);

// Does all work that may wait for another session, before the claim locks a row.
void prepare_to_take(Claim* claim, TaskCursor* cursor);

// Locks this row of the cursor, claims the job for the worker and adds it to the result. False when
// another transaction has locked or changed the row.
bool take_row(Claim* claim, TaskCursor* cursor, const ItemPointerData& tid);

// Passes the current row if another claim has taken or reserved the row. True when the cursor has
// moved.
bool skip_claimed(Claim* claim, TaskCursor* cursor);

// Takes a range of the best cursor. True when the cursor has moved; false when the claim must
// consider the current row by itself.
bool take_range(Claim* claim, TaskCursor* cursor);

// Publishes the claim in progress before it takes a single row, so that other claims may skip the
// row.
void publish_walk(TaskCursor* cursor);

// Whether the job has crashed before, and a further crash would quarantine the job.
bool is_poison_suspect(Claim* claim, TaskCursor* cursor);

// Gives a poison suspect to a worker that runs no job, as the only job of the claim.
void consider_poison_suspect(Claim* claim, TaskCursor* cursor);

// A worker with an isolated job gets no other job. It gets the isolated job once it is idle. The
// claim clears an isolated job that has ended or runs at another worker.
void check_isolated_job(Claim* claim);

}  // namespace pulse
