#include "access/catalog.hpp"
#include "claim/claim.hpp"
#include "server/values.hpp"
#include "shared/memory.hpp"
#include "wake/pending_wakes.hpp"
#include "wake/waiters.hpp"

namespace pulse {
namespace {

// How many jobs of other claims a finished claim skips in search of a free job, and how many
// candidates it opens.
constexpr int kMaxSkipped = 16;

// Closes a cursor without a due job at once, because opening an index scan makes the server search
// all open scans.
void open_cursor(Claim* claim, TaskCursor* cursor) {
  cursor->is_open = true;
  cursor->scan.low_water.sharers = Max(claim->worker.task_count, list_length(claim->cursors));
  cursor->due = first_due(&cursor->scan);
  if (!cursor->due) close_cursor(claim, cursor);
}

// Allocates each cursor separately, because an index scan keeps the address of its keys.
TaskCursor* add_to(Claim* claim) {
  auto* cursor = static_cast<TaskCursor*>(palloc(sizeof(TaskCursor)));
  claim->cursors = lappend(claim->cursors, cursor);
  return cursor;
}

// True when the cursor has a job that this claim leaves to other claims, as far as a few rows show.
bool has_more(Claim* claim, TaskCursor* cursor) {
  if (claim->claimed < claim->max_jobs) return false;
  for (int i = 0; i < kMaxSkipped && cursor->due; i++)
    if (!skip_claimed(claim, cursor)) return true;
  return cursor->due;
}

}  // namespace

void init_cursor(Claim* claim, TaskCursor* cursor, Datum identifier) {
  memset(cursor, 0, sizeof(*cursor));
  text* name = DatumGetTextPP(identifier);
  cursor->identifier = identifier;
  cursor->bit = task_bit(name);
  cursor->scan.relation = claim->table.relation;
  cursor->scan.index = claim->index;
  cursor->scan.snapshot = claim->table.snapshot;
  cursor->scan.now = claim->stamp.now;
  cursor->scan.state = catalog()->state_ready;
  cursor->scan.low_water = {claim->low_water ? claim->low_water + cursor->bit : nullptr,
                            cursor->bit,
                            hash_of_task(name),
                            claim->low_water_generation[cursor->bit],
                            own_ready_from(cursor->bit),
                            1};
  fix_text(&cursor->scan, identifier);
}

void add_candidate(Claim* claim, const TaskCursor& cursor, JobOrder from) {
  TaskCursor* candidate = add_to(claim);
  *candidate = cursor;
  static_cast<JobOrder&>(candidate->scan) = from;
  candidate->due = true;
}

void open_cursors(Claim* claim) {
  if (claim->worker.task_count == kEveryTask) add_every_task(claim);
  for (int i = 0; i < claim->worker.task_count; i++) {
    TaskCursor* cursor = add_to(claim);
    init_cursor(claim, cursor, claim->worker.tasks[i]);
    open_cursor(claim, cursor);
  }
}

TaskCursor* cursor_of(Claim* claim, Datum identifier) {
  ListCell* cell;
  foreach (cell, claim->cursors) {
    auto* cursor = static_cast<TaskCursor*>(lfirst(cell));
    if (is_same_text(cursor->identifier, identifier)) return cursor;
  }
  TaskCursor* cursor = add_to(claim);
  init_cursor(claim, cursor, identifier);
  return cursor;
}

TaskCursor* best_cursor(Claim* claim) {
  for (;;) {
    TaskCursor* best = nullptr;
    ListCell* cell;
    foreach (cell, claim->cursors) {
      auto* cursor = static_cast<TaskCursor*>(lfirst(cell));
      if (cursor->due && (!best || sorts_before(&cursor->scan, &best->scan))) best = cursor;
    }
    if (!best || best->is_open) return best;
    open_cursor(claim, best);
  }
}

bool is_placed_first(const Claim* claim, const TaskCursor* cursor) {
  if (claim->next_placed == claim->placed.count) return false;
  return !cursor || sorts_before(&claim->placed.job[claim->next_placed], &cursor->scan);
}

void record_next_due(Claim* claim, int bit, TimestampTz run_at) {
  DatabaseState* database = this_database();
  if (database && lower_due(&database->next_due[bit], run_at)) claim->has_lowered_due = true;
}

void close_cursor(Claim* claim, TaskCursor* cursor) {
  if (cursor->scan.next_due) record_next_due(claim, cursor->bit, cursor->scan.next_due);
  if (has_more(claim, cursor)) note_more(cursor->bit);
  if (cursor->due) leave_row(&cursor->scan);
  end_due(&cursor->scan);
  cursor->is_open = cursor->due = false;
}

void close_cursors(Claim* claim) {
  int opened = 0;
  ListCell* cell;
  foreach (cell, claim->cursors) {
    auto* cursor = static_cast<TaskCursor*>(lfirst(cell));
    bool is_candidate = cursor->due && !cursor->is_open && claim->claimed >= claim->max_jobs;
    // A note too many costs a claim without a job, so this claim does not open every candidate.
    if (is_candidate && opened++ < kMaxSkipped)
      open_cursor(claim, cursor);
    else if (is_candidate)
      note_more(cursor->bit);
    if (cursor->is_open) close_cursor(claim, cursor);
  }
  // Without the signal, waiters would read the due times up to 100 ms later.
  if (claim->has_lowered_due) signal_waiters(kTimerOwners);
}

}  // namespace pulse
