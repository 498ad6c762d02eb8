#include "queue/parked_jobs.hpp"

#include "access/catalog.hpp"
#include "access/columns.hpp"
#include "limit/queue_marks.hpp"
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
bool place_or_open(JobTable* table, Queue* queue, TupleTableSlot* parked, LevelCounts* counts) {
  if (TransactionIdIsValid(locker_of(parked))) return false;
  return try_place(counts, parked, queue->name, queue->bucket) || open_job(table, parked->tts_tid);
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

enum class Opening {
  kOpened,
  kSwapped,
  kLocked,  // a claim or an operator has locked the row
  kEnded    // the promotion of the queue ends here, and the queue mark is set again
};

// Opens a parked job that may_open() or may_open_successor() allows.
Opening open_next(JobTable* table, Queue* queue, TupleTableSlot* parked, PromotionBudget* budget) {
  bool has_places_left = budget->places_left > 0;
  bool swaps = queue->taken >= queue->concurrency;
  if (!has_places_left || (swaps && !swap_worst(table, queue, parked))) {
    come_back(budget, queue->bucket, has_places_left);
    budget->more |= !has_places_left && !budget->turn;
    return Opening::kEnded;
  }
  if (!swaps && !place_or_open(table, queue, parked, &budget->counts)) return Opening::kLocked;
  budget->places_left--;
  if (!swaps) give_place(queue, DatumGetInt64(value_of(parked, kJobId)));
  return swaps ? Opening::kSwapped : Opening::kOpened;
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

// A promotion that swapped jobs sets known.count to this value, so that promote_locked() forgets
// the queue.
constexpr int kDoNotRemember = PG_INT32_MAX;

bool open_lowest(JobTable* table, Queue* queue, PromotionBudget* budget) {
  OrderedScan parked;
  bool has_swapped = false;
  bool is_held = false;
  bool due = begin_parked_scan(&parked, table->relation, table->snapshot, *queue);
  for (; due && may_open(*queue, parked); due = next_due_in_order(&parked)) {
    if (is_placed(budget->counts, parked.id)) continue;
    Opening opening = open_next(table, queue, parked.row, budget);
    if (opening == Opening::kEnded) break;
    is_held |= opening == Opening::kLocked;
    if (opening == Opening::kLocked) leave_in_order(&parked);
    has_swapped |= opening == Opening::kSwapped;
    if (is_full(*queue)) break;  // the scan leaves the next row unread
  }
  if (due)
    leave_in_order(&parked);
  else if (is_held)
    come_back(budget, queue->bucket, true);  // the holder of the job sets no queue mark
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

bool open_waiting(JobTable* table, Queue* queue, PromotionBudget* budget) {
  if (!queue->strict) return open_lowest(table, queue, budget);
  IndexLookup successors;
  bool is_left = true;
  if (!find_successor(&successors, *queue, table->relation, table->snapshot)) {
    is_left = open_lowest(table, queue, budget);
  } else {
    queue->known.count = kDoNotRemember;
    if (may_open_successor(*queue, successors.row)) {
      Opening opening = open_next(table, queue, successors.row, budget);
      is_left = opening == Opening::kEnded;
      if (opening == Opening::kLocked) come_back(budget, queue->bucket, true);
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

void come_back(PromotionBudget* budget, int bucket, bool is_busy) {
  budget->busy |= is_busy;
  if (budget->turn)
    budget->turn->has_more = true;
  else if (budget->lets_join && !is_busy)
    mark_queue(this_database(), bucket);  // this call may still have places left for the queue
  else
    return_promotion_mark(bucket);
}

}  // namespace pulse
