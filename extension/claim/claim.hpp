// One call of pulse.claim while it runs, shared by the walk (task_cursors.cpp), the handing out
// (claim.cpp) and the rule of the last chance (last_chance.cpp).
#pragma once

#include "server/postgres.hpp"

#include "claim/claimed_job.hpp"
#include "claim/claiming_worker.hpp"
#include "claim/claims_in_progress.hpp"
#include "claim/due_scan.hpp"
#include "claim/low_water_mark.hpp"
#include "job/job_table.hpp"
#include "job/task_settings.hpp"
#include "server/shared_memory.hpp"

namespace pulse {

// The due jobs of one task.
struct TaskCursor {
  DueScan scan;
  Datum identifier;
  int bit;
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
  TaskCursor** cursors;
  int cursor_count;
  int claimed;
  TransactionId blocking_xid;  // the last transaction that had a row
  TransactionId checked_xid;   // the last one that was asked for its claims in progress
  ClaimInProgress claim_in_progress;
  MarkBucket* marks;  // one per bit; NULL: nothing is remembered
  uint64 mark_generation[kTaskBits];
  bool stays_in_place;  // plain jobs are claimed in place (in_place_claim.hpp)
  int64* in_place_ids;  // those that were
  int in_place_count;
  bool closed;                // nothing more is given in this call
  bool is_job_held;           // somebody who is no claim has a job that it could have had
  bool poison_suspect_waits;  // a poison suspect waits for this worker, or another, to be idle
  MemoryContext row_context;  // reset for each row that is looked at
  ClaimStamp stamp;           // a token of 0: none was needed so far
  ReturnSetInfo* results;
};

// The due jobs of the tasks that the claiming worker serves.
void open_cursors(Claim* claim);

// The one whose job comes first; NULL when none has any.
TaskCursor* best_cursor(Claim* claim);

// Tells waiters when the next job of each of these tasks falls due, and that there was more. At
// once: this worker may be at work when it does.
void close_cursors(Claim* claim);

// The settings of the cursor's task, read once per call.
const TaskSettings& settings_of(Claim* claim, TaskCursor* cursor);

// Whether the worker may have the row at hand, with so many more of the same call in view.
enum class Fit {
  kGood,
  kIsolated,  // it is a poison suspect
  kNot        // somebody holds it, the worker asked not to get such, or it cannot wait for a start
};
Fit fit_of_row(Claim* claim, TaskCursor* cursor, int in_view);

// Whatever may wait for somebody before a row is taken.
void prepare_to_take(Claim* claim, TaskCursor* cursor);

// Locks this row of the cursor, makes it this worker's and adds it to the result. False when
// somebody else holds it.
bool take_row(Claim* claim, TaskCursor* cursor, const ItemPointerData& tid);

// A job that was present at all but the last of the worker deaths it may be present at.
bool is_poison_suspect(Claim* claim, TaskCursor* cursor);

// A poison suspect is given alone, to a worker that holds nothing and gets nothing else.
void consider_poison_suspect(Claim* claim, TaskCursor* cursor);

// A worker with a poison suspect of its own gets nothing but that: not while it runs, and not
// before this worker has become idle. Forgets a poison suspect that has gone elsewhere.
void check_isolated_job(Claim* claim);

}  // namespace pulse
