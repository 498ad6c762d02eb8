#include "queue/parked_jobs.hpp"

#include "access/catalog.hpp"
#include "access/columns.hpp"
#include "server/clocks.hpp"
#include "server/values.hpp"
#include "wake/pending_wakes.hpp"

namespace pulse {
namespace {

// False when another transaction has locked or changed the row.
bool change_state(JobTable* table, const ItemPointerData& seen, Oid state) {
  if (!try_lock_row(table, seen)) return false;
  JobChange change = {};
  change.set_waiting(state);
  update_locked_row(table, &change);
  return true;
}

// False when another transaction keeps the claim of this transaction from the job.
bool place_or_open(const QueueOpening& opening, Queue* queue, TupleTableSlot* parked) {
  if (TransactionIdIsValid(locker_of(parked))) return false;
  return try_place(opening.placed, parked, queue->name, queue->bucket) ||
         open_job(opening.table, parked->tts_tid);
}

// Opens the parked job in exchange for the queue's worst open job. A lock on either row leaves both
// rows as they are. False when a claim is taking the worst open job.
bool swap_worst(JobTable* table, Queue* queue, TupleTableSlot* parked) {
  const OpenJob& worst = queue->open[queue->open_count - 1];
  if (!try_lock_row(table, worst.tid)) return false;
  if (!open_job(table, parked->tts_tid)) return true;
  queue->open_count--;
  if (!change_state(table, worst.tid, catalog()->state_parked)) elog(ERROR, "lost a row lock");
  note_parked(queue->bucket, {worst.priority, worst.run_at});
  return true;
}

enum class Step {
  kOpened,
  kSwapped,
  kLocked,  // a claim or an operator has locked the row
  kEnded    // the promotion of the queue ends here, and a job is left to start
};

// Opens a parked job that may_open() or may_open_successor() allows.
Step open_next(Queue* queue, TupleTableSlot* parked, QueueOpening* opening) {
  bool swaps = queue->taken >= queue->concurrency;
  if (opening->starts_left <= 0) {
    opening->has_more = true;
    return Step::kEnded;
  }
  if (swaps && !swap_worst(opening->table, queue, parked)) {
    opening->is_busy = true;
    return Step::kEnded;
  }
  if (!swaps && !place_or_open(*opening, queue, parked)) return Step::kLocked;
  opening->starts_left--;
  if (!swaps) give_place(queue, DatumGetInt64(value_of(parked, kJobId)));
  return swaps ? Step::kSwapped : Step::kOpened;
}

// True when the queue has a due parked job, at which the scan then stands.
bool begin_parked_scan(OrderedScan* parked, Relation job, Snapshot snapshot, const Queue& queue) {
  memset(parked, 0, sizeof(*parked));
  parked->relation = job;
  parked->index = index_open(catalog()->job_parked_idx, AccessShareLock);
  parked->snapshot = snapshot;
  parked->now = wall_now();
  parked->state = catalog()->state_parked;
  parked->prefix = 1;
  ScanKeyInit(&parked->keys[0], 1, BTEqualStrategyNumber, F_INT2EQ,
              Int16GetDatum(static_cast<int16>(queue.bucket)));
  fix_text(parked, queue.name);
  return queue.is_recalled ? first_due_from(parked, queue.known.front) : first_due_in_order(parked);
}

void end_parked_scan(OrderedScan* parked) {
  if (parked->next_due) note_parked_due(parked->next_due);
  end_ordered_scan(parked);
  index_close(parked->index, AccessShareLock);
}

// A promotion that swapped jobs sets known.count to this value, so that open_places() forgets
// the queue.
constexpr int kDoNotRemember = PG_INT32_MAX;

bool open_lowest(Queue* queue, QueueOpening* opening) {
  OrderedScan parked;
  bool has_swapped = false;
  bool is_held = false;
  JobTable* table = opening->table;
  bool due = begin_parked_scan(&parked, table->relation, table->snapshot, *queue);
  for (; due && may_open(*queue, parked); due = next_due_in_order(&parked)) {
    if (is_placed(opening->placed, parked.id)) continue;
    Step step = open_next(queue, parked.row, opening);
    if (step == Step::kEnded) break;
    is_held |= step == Step::kLocked;
    if (step == Step::kLocked) leave_in_order(&parked);
    has_swapped |= step == Step::kSwapped;
    if (is_full(*queue)) break;  // the scan leaves the next row unread
  }
  if (due)
    leave_in_order(&parked);
  else
    opening->is_busy |= is_held;  // the holder of the job sets no queue mark
  constexpr JobOrder kEnd = {PG_INT16_MAX, PG_INT64_MAX, PG_INT64_MAX};
  queue->known.front = parked.has_left ? parked.left : kEnd;
  // After a swap the remembered places no longer hold.
  queue->known.count = has_swapped ? kDoNotRemember : queue->taken;
  end_parked_scan(&parked);
  return due;
}

bool is_locked(const Foresight& foresight, ItemPointerData tid) {
  TupleTableSlot* row = table_slot_create(foresight.job, nullptr);
  bool is_locked = table_tuple_fetch_row_version(foresight.job, &tid, foresight.snapshot, row) &&
                   TransactionIdIsValid(locker_of(row));
  ExecDropSingleTupleTableSlot(row);
  return is_locked;
}

void note_id(ArrayBuildState** ids, int64 id) {
  *ids = accumArrayResult(*ids, Int64GetDatum(id), false, INT8OID, CurrentMemoryContext);
}

// As open_next(), without locks and changes. False where the promotion would end.
bool foresee_next(Queue* queue, TupleTableSlot* parked, Foresight* foresight) {
  bool swaps = queue->taken >= queue->concurrency;
  const OpenJob* worst = swaps ? &queue->open[queue->open_count - 1] : nullptr;
  if (swaps && is_locked(*foresight, worst->tid)) return false;
  if (TransactionIdIsValid(locker_of(parked))) return true;
  int64 id = DatumGetInt64(value_of(parked, kJobId));
  note_id(&foresight->opened, id);
  if (swaps) {
    note_id(&foresight->parked, worst->id);
    queue->open_count--;
  } else {
    give_place(queue, id);
  }
  return true;
}

}  // namespace

void foresee_opening(Queue* queue, Foresight* foresight) {
  if (queue->strict) {
    IndexLookup successors;
    bool has_successor = find_successor(&successors, *queue, foresight->job, foresight->snapshot);
    if (has_successor && may_open_successor(*queue, successors.row))
      foresee_next(queue, successors.row, foresight);
    close_index_lookup(&successors);
    if (has_successor) return;
  }
  OrderedScan parked;
  bool due = begin_parked_scan(&parked, foresight->job, foresight->snapshot, *queue);
  while (due && may_open(*queue, parked) && foresee_next(queue, parked.row, foresight) &&
         parked.id != foresight->wanted)
    due = next_due_in_order(&parked);
  end_parked_scan(&parked);
}

bool open_job(JobTable* table, const ItemPointerData& tid) {
  if (!change_state(table, tid, catalog()->state_ready)) return false;
  note_ready(DatumGetTextPP(value_of(table->changed, kJobIdentifier)),
             DatumGetTimestampTz(value_of(table->changed, kJobRunAt)));
  return true;
}

bool open_waiting(Queue* queue, QueueOpening* opening) {
  if (!queue->strict) return open_lowest(queue, opening);
  IndexLookup successors;
  JobTable* table = opening->table;
  bool is_left = true;
  if (!find_successor(&successors, *queue, table->relation, table->snapshot)) {
    is_left = open_lowest(queue, opening);
  } else {
    queue->known.count = kDoNotRemember;
    if (may_open_successor(*queue, successors.row)) {
      Step step = open_next(queue, successors.row, opening);
      is_left = step == Step::kEnded;
      opening->is_busy |= step == Step::kLocked;
    }
  }
  close_index_lookup(&successors);
  return is_left;
}

bool would_open(Relation job, Snapshot snapshot, const Queue& queue, bool* due) {
  IndexLookup successors;
  if (queue.strict) {
    bool has_successor = find_successor(&successors, queue, job, snapshot);
    bool wanted = has_successor && may_open_successor(queue, successors.row);
    close_index_lookup(&successors);
    if (has_successor) return wanted;
  }
  OrderedScan parked;
  *due = begin_parked_scan(&parked, job, snapshot, queue);
  bool wanted = *due && may_open(queue, parked);
  end_parked_scan(&parked);
  return wanted;
}

}  // namespace pulse
