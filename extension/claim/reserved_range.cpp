#include "claim/reserved_range.hpp"

#include "access/catalog.hpp"
#include "claim/claims_in_progress.hpp"
#include "wake/pending_wakes.hpp"

namespace pulse {
namespace {

// As many rows as are looked at before any is locked. What somebody faster has taken meanwhile was
// looked at for nothing; moving the head costs a spinlock.
constexpr int kMostRows = 64;

struct Rows {
  int count;
  int16 priority;
  ItemPointerData tid[kMostRows];
  HeadKey key[kMostRows];
};

// Puts the rows that come first into view. False when the row at hand is not for this claim.
bool view_rows(Claim* claim, Stream* stream, int most, Rows* rows) {
  DueScan* scan = &stream->scan;
  rows->count = 0;
  rows->priority = scan->priority;
  if (fit_of_row(claim, stream, 0) != Fit::kGood) return false;
  // Others find nothing where this claim has set rows aside: it waits for nobody from then on.
  prepare_to_take(claim, stream);
  begin_stretch(scan);
  do {
    rows->tid[rows->count] = scan->slot->tts_tid;
    rows->key[rows->count++] = {scan->run_at, scan->id};
    // If this is undone, somebody is to look for them.
    note_claimed(stream->bit);
    if (rows->count == most) break;
    stream->due = next_due(scan);
  } while (stream->due && scan->priority == rows->priority && best_stream(claim) == stream &&
           fit_of_row(claim, stream, rows->count) == Fit::kGood);
  return true;
}

void take_rows(Claim* claim, Stream* stream, const Rows& rows) {
  bool is_given_back = false;
  for (int i = 0; i < rows.count; i++) {
    if (take_row(claim, stream, rows.tid[i]) || is_given_back) continue;
    give_back_row(&stream->scan, rows.priority, rows.key[i]);
    // Others went past it because of us, and whoever has it now need not tell them.
    note_more(stream->bit);
    is_given_back = true;
  }
}

// Whether the transaction made the row at hand a running job.
bool was_claimed_by(Claim* claim, TupleTableSlot* row, TransactionId xid) {
  auto* seen = reinterpret_cast<BufferHeapTupleTableSlot*>(row);
  HeapTupleHeader header = seen->base.tuple->t_data;
  LockBuffer(seen->buffer, BUFFER_LOCK_SHARE);
  bool is_changed = header->t_choice.t_heap.t_xmax == xid &&
                    !HEAP_XMAX_IS_LOCKED_ONLY(header->t_infomask) &&
                    !ItemPointerEquals(&header->t_ctid, &row->tts_tid);
  ItemPointerData next = header->t_ctid;
  LockBuffer(seen->buffer, BUFFER_LOCK_UNLOCK);
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

// Whether the row at hand is with another claim that is under way and announced.
bool is_with_other_claim(Claim* claim, Stream* stream) {
  if (claim->announcer != claim->rival) {
    claim->announcement = announcement_of(claim->rival);
    claim->announcer = claim->rival;
  }
  return ((claim->announcement.bits >> stream->bit) & 1) &&
         stream->scan.run_at >= claim->announcement.from &&
         was_claimed_by(claim, stream->scan.slot, claim->rival);
}

}  // namespace

bool go_past_others(Claim* claim, Stream* stream) {
  if (catch_up(&stream->scan, &stream->due)) return true;
  if (!is_somebodys(stream->scan.slot, &claim->rival)) return false;
  if (!is_with_other_claim(claim, stream)) {
    // Who only locks or edits a job tells nobody when he lets go of it.
    claim->is_job_held = true;
    return false;
  }
  stream->due = next_due(&stream->scan);
  return true;
}

void announce_walk(Stream* stream) {
  const DueScan& scan = stream->scan;
  if (!scan.heads.bucket) return;
  note_passed(stream->bit, scan.walk.start.run_at);
  announce_claim(stream->bit, scan.walk.start.run_at);
}

bool take_stretch(Claim* claim, Stream* stream) {
  DueScan* scan = &stream->scan;
  if (!scan->walk.may_advance) return false;
  TimestampTz from = scan->walk.start.run_at;
  int most = Min(kMostRows, claim->max_jobs - claim->claimed);
  Rows rows;
  if (!view_rows(claim, stream, most, &rows)) return false;
  bool is_full = rows.count == most;
  if (!end_stretch(scan, is_full, &stream->due)) return true;
  announce_claim(stream->bit, from);
  take_rows(claim, stream, rows);
  if (is_full) stream->due = next_due(scan);
  return true;
}

}  // namespace pulse
