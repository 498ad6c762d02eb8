#include "access/catalog.hpp"
#include "access/index_lookup.hpp"
#include "claim/claim.hpp"
#include "server/compat.hpp"
#include "server/shared_memory.hpp"
#include "server/values.hpp"
#include "wake/pending_wakes.hpp"
#include "wake/waiters.hpp"

namespace pulse {
namespace {

// Maximum number of other claims' jobs that a finished claim skips in search of a free one.
constexpr int kMaxSkipped = 16;

void add_cursor(Claim* claim, Datum identifier) {
  // Allocated separately, because an index scan keeps the address of its keys.
  auto* cursor = static_cast<TaskCursor*>(palloc0(sizeof(TaskCursor)));
  claim->cursors = lappend(claim->cursors, cursor);
  text* name = DatumGetTextPP(identifier);
  cursor->identifier = identifier;
  cursor->bit = task_bit(name);
  cursor->scan.relation = claim->table.relation;
  cursor->scan.index = claim->index;
  cursor->scan.snapshot = claim->table.snapshot;
  cursor->scan.now = claim->stamp.now;
  cursor->scan.state = catalog()->state_ready;
  cursor->scan.marks = {claim->marks ? claim->marks + cursor->bit : nullptr,
                        cursor->bit,
                        mark_task(name),
                        claim->mark_generation[cursor->bit],
                        own_ready_from(cursor->bit),
                        Max(claim->worker.task_count, list_length(claim->cursors))};
  fix_text(&cursor->scan, identifier);
  cursor->due = first_due(&cursor->scan);
}

// Adds every task with ready jobs, by a skip scan over the index's first column.
void add_every_task(Claim* claim) {
  IndexScanDesc scan =
      begin_index_scan(claim->table.relation, claim->index, claim->table.snapshot, 1);
  scan->xs_want_itup = true;
  // Dead entries also name their task; skipping entries marked dead would read all their pages.
  scan->ignore_killed_tuples = false;
  Datum last = PointerGetDatum(cstring_to_text(""));
  for (;;) {
    ScanKeyData key;
    init_text_key(&key, 1, BTGreaterStrategyNumber, F_TEXT_GT, last);
    index_rescan(scan, &key, 1, nullptr, 0);
    if (!index_getnext_tid(scan, ForwardScanDirection)) break;
    bool isnull;
    // Read from the index entry, because millions of dead entries may follow.
    last = PointerGetDatum(
        DatumGetTextPCopy(index_getattr(scan->xs_itup, 1, scan->xs_itupdesc, &isnull)));
    add_cursor(claim, last);
  }
  index_endscan(scan);
}

}  // namespace

void open_cursors(Claim* claim) {
  if (claim->worker.task_count == kEveryTask) add_every_task(claim);
  for (int i = 0; i < claim->worker.task_count; i++) add_cursor(claim, claim->worker.tasks[i]);
}

TaskCursor* best_cursor(Claim* claim) {
  TaskCursor* best = nullptr;
  ListCell* cell;
  foreach (cell, claim->cursors) {
    auto* cursor = static_cast<TaskCursor*>(lfirst(cell));
    if (cursor->due && (!best || sorts_before(&cursor->scan, &best->scan))) best = cursor;
  }
  return best;
}

namespace {

// True when the cursor has a job that this claim leaves to other claims, as far as a few rows show.
bool has_more(Claim* claim, TaskCursor* cursor) {
  if (claim->claimed < claim->max_jobs) return false;
  for (int i = 0; i < kMaxSkipped && cursor->due; i++)
    if (!skip_claimed(claim, cursor)) return true;
  return cursor->due;
}

}  // namespace

void close_cursors(Claim* claim) {
  DatabaseState* database = this_database();
  bool is_lowered = false;
  ListCell* cell;
  foreach (cell, claim->cursors) {
    auto* cursor = static_cast<TaskCursor*>(lfirst(cell));
    if (cursor->scan.next_due && database)
      is_lowered |= lower_due(&database->next_due[cursor->bit], cursor->scan.next_due);
    if (has_more(claim, cursor)) note_more(cursor->bit);
    if (cursor->due) leave_row(&cursor->scan);
    end_due(&cursor->scan);
  }
  if (is_lowered) signal_waiters(kTimerOwners);
}

}  // namespace pulse
