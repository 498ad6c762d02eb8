// Takes a range of rows for one claim. The claim reads the rows, moves the low-water mark over
// them, and only then locks and updates one row after the other. Other claims continue after the
// range (low_water_mark.hpp). Without ranges, each of several concurrent claims would read all
// rows, and take the rows that the other claims left over.
#include "access/catalog.hpp"
#include "access/columns.hpp"
#include "claim/claim.hpp"
#include "claim/claims_in_progress.hpp"
#include "wake/pending_wakes.hpp"

namespace pulse {
namespace {

// Maximum number of rows that a claim reads before it locks any. Reading rows that a faster claim
// takes is wasted work; moving a low-water mark costs only a spinlock.
constexpr int kMaxRows = 64;

struct Rows {
  int count;
  int16 priority;
  ItemPointerData tid[kMaxRows];
  OrderKey key[kMaxRows];
};

// Reads the first rows of the cursor. False when this claim must not take the current row.
bool read_rows(Claim* claim, TaskCursor* cursor, Rows* rows) {
  DueScan* scan = &cursor->scan;
  int max_count = Min(kMaxRows, claim->max_jobs - claim->claimed);
  rows->count = 0;
  rows->priority = scan->priority;
  if (fit_of_row(claim, cursor, 0) != Fit::kGood) return false;
  // Other claims skip the reserved rows, so this claim must not wait from then on.
  prepare_to_take(claim, cursor);
  publish_walk(cursor);
  begin_range(scan);
  do {
    rows->tid[rows->count] = scan->row->tts_tid;
    rows->key[rows->count++] = {scan->run_at, scan->id};
    // If this transaction is undone, waiters must claim these jobs.
    note_claimed(cursor->bit);
    cursor->due = next_due(scan);
  } while (rows->count < max_count && cursor->due && scan->priority == rows->priority &&
           best_cursor(claim) == cursor && !is_placed_first(claim, cursor) &&
           fit_of_row(claim, cursor, rows->count) == Fit::kGood);
  return true;
}

// Takes the rows that no other claim has reserved.
void take_rows(Claim* claim, TaskCursor* cursor, const Rows& rows, const Reservation& range) {
  bool is_left = false;
  for (int i = 0; i < rows.count; i++) {
    if (precedes(rows.key[i], range.from)) continue;
    if (take_row(claim, cursor, rows.tid[i]) || is_left) continue;
    is_left = true;
    leave_passed_row(&cursor->scan, rows.priority, rows.key[i]);
    // The transaction that holds the row need not wake any waiter at its end.
    claim->is_job_held = true;
    if (!range.is_done) continue;
    return_to_low_water_mark(cursor->scan.low_water, rows.priority, rows.key[i]);
    // Other claims skipped the row because of this claim.
    note_more(cursor->bit);
  }
}

// True when this transaction made the current row a running job.
bool was_claimed_by(Claim* claim, TupleTableSlot* row, TransactionId xid) {
  auto* buffered = reinterpret_cast<BufferHeapTupleTableSlot*>(row);
  HeapTupleHeader header = buffered->base.tuple->t_data;
  LockBuffer(buffered->buffer, BUFFER_LOCK_SHARE);
  bool is_changed = header->t_choice.t_heap.t_xmax == xid &&
                    !HEAP_XMAX_IS_LOCKED_ONLY(header->t_infomask) &&
                    !ItemPointerEquals(&header->t_ctid, &row->tts_tid);
  ItemPointerData next = header->t_ctid;
  LockBuffer(buffered->buffer, BUFFER_LOCK_UNLOCK);
  TupleTableSlot* changed = claim->table.locked;
  bool isnull;
  bool is_claimed =
      is_changed &&
      table_tuple_fetch_row_version(claim->table.relation, &next, SnapshotAny, changed) &&
      DatumGetTransactionId(slot_getsysattr(changed, MinTransactionIdAttributeNumber, &isnull)) ==
          xid &&
      DatumGetObjectId(slot_getattr(changed, kJobState, &isnull)) == catalog()->state_running;
  ExecClearTuple(changed);
  return is_claimed;
}

// True when a published claim in progress holds the current row.
bool is_with_other_claim(Claim* claim, TaskCursor* cursor) {
  if (claim->checked_xid != claim->blocking_xid) {
    claim->claim_in_progress = claim_of_transaction(claim->blocking_xid);
    claim->checked_xid = claim->blocking_xid;
  }
  return ((claim->claim_in_progress.bits >> cursor->bit) & 1) &&
         cursor->scan.run_at >= claim->claim_in_progress.from &&
         was_claimed_by(claim, cursor->scan.row, claim->blocking_xid);
}

}  // namespace

bool skip_claimed(Claim* claim, TaskCursor* cursor) {
  if (catch_up(&cursor->scan, &cursor->due)) return true;
  if (!is_locked_by_other(cursor->scan.row, &claim->blocking_xid)) return false;
  if (!is_with_other_claim(claim, cursor)) {
    // A transaction that only locks or edits a job sends no wake-up at its end.
    claim->is_job_held = true;
    return false;
  }
  cursor->due = next_due(&cursor->scan);
  return true;
}

void publish_walk(TaskCursor* cursor) {
  const DueScan& scan = cursor->scan;
  if (!scan.low_water.bucket) return;
  note_passed(cursor->bit, scan.walk.start.run_at);
  publish_claim(cursor->bit, scan.walk.start.run_at);
}

bool take_range(Claim* claim, TaskCursor* cursor) {
  if (!cursor->scan.walk.can_reserve) return false;
  Rows rows;
  if (!read_rows(claim, cursor, &rows)) return false;
  take_rows(claim, cursor, rows, end_range(&cursor->scan));
  return true;
}

}  // namespace pulse
