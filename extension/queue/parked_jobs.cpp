#include "queue/parked_jobs.hpp"

#include "access/catalog.hpp"
#include "access/columns.hpp"
#include "access/index_lookup.hpp"
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
bool place_or_open(const OpeningWalk& walk, Queue* queue, TupleTableSlot* parked) {
  if (TransactionIdIsValid(locker_of(parked))) return false;
  return try_place(walk.placed, parked, queue->name, queue->bucket) ||
         open_job(walk.table, parked->tts_tid);
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

Step open_next(ParkedWalk* parked_walk, Queue* queue, TupleTableSlot* parked) {
  auto* walk = static_cast<OpeningWalk*>(parked_walk);
  bool swaps = queue->taken >= queue->concurrency;
  if (walk->starts_left <= 0) {
    walk->has_more = true;
    return Step::kEnded;
  }
  if (swaps && !swap_worst(walk->table, queue, parked)) {
    walk->is_busy = true;
    return Step::kEnded;
  }
  if (!swaps && !place_or_open(*walk, queue, parked)) return Step::kLocked;
  walk->starts_left--;
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

// Whether no parked job of any order may be opened, and no level waits for such news.
bool is_full(const Queue& queue) {
  return !queue.is_level_bound && queue.taken >= queue.concurrency && queue.open_count == 0;
}

// Whether the parked job may be opened: where all places are taken, in exchange for a worse open
// job.
bool may_open(const Queue& queue, const OrderedScan& parked) {
  if (queue.taken != queue.concurrency) return queue.taken < queue.concurrency;
  if (queue.open_count == 0) return false;
  const OpenJob& worst = queue.open[queue.open_count - 1];
  return worst.succession == kNoSuccession && sorts_before(&parked, &worst);
}

bool walk_lowest(Queue* queue, ParkedWalk* walk) {
  OrderedScan parked;
  bool has_swapped = false;
  bool is_held = false;
  bool due = begin_parked_scan(&parked, walk->job, walk->snapshot, *queue);
  for (; due && may_open(*queue, parked); due = next_due_in_order(&parked)) {
    if (is_placed(walk->placed, parked.id)) continue;
    Step step = walk->meet(walk, queue, parked.row);
    if (step == Step::kEnded) break;
    is_held |= step == Step::kLocked;
    if (step == Step::kLocked) leave_in_order(&parked);
    has_swapped |= step == Step::kSwapped;
    if (is_full(*queue)) break;  // the scan leaves the next row unread
  }
  if (due)
    leave_in_order(&parked);
  else
    walk->is_busy |= is_held;  // the holder of the job sets no queue mark
  constexpr JobOrder kEnd = {PG_INT16_MAX, PG_INT64_MAX, PG_INT64_MAX};
  queue->known.front = parked.has_left ? parked.left : kEnd;
  // After a swap the remembered places no longer hold.
  queue->known.count = has_swapped ? kDoNotRemember : queue->taken;
  end_parked_scan(&parked);
  return due;
}

// In a strict queue: finds the parked job that starts before all other jobs, and puts it into the
// lookup's `row`. The caller closes the lookup in either case.
bool find_successor(IndexLookup* successors, const Queue& queue, Relation job, Snapshot snapshot) {
  open_index_lookup(successors, job, catalog()->job_successor_idx, snapshot, 1);
  ScanKeyData key;
  init_text_key(&key, 1, BTEqualStrategyNumber, F_TEXTEQ, queue.name);
  seek_keys(successors, &key);
  return next_row(successors);
}

// Whether the job of find_successor() may be opened: where the place is taken, in exchange for an
// open job.
bool may_open_successor(const Queue& queue, TupleTableSlot* row) {
  if (DatumGetChar(value_of(row, kJobIndexLane)) == kLaneUndecided) return false;
  TimestampTz run_at = DatumGetTimestampTz(value_of(row, kJobRunAt));
  if (run_at > wall_now()) {
    note_parked_due(run_at);
    return false;
  }
  if (queue.taken != queue.concurrency) return queue.taken < queue.concurrency;
  return queue.open_count > 0 && succession_of(row) < queue.open[queue.open_count - 1].succession;
}

// Meets the successor, if it may open. True when the walk leaves it.
bool walk_successor(Queue* queue, ParkedWalk* walk, TupleTableSlot* successor) {
  queue->known.count = kDoNotRemember;
  if (!may_open_successor(*queue, successor)) return true;
  Step step = walk->meet(walk, queue, successor);
  walk->is_busy |= step == Step::kLocked;
  return step == Step::kEnded;
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

Step foresee_next(ParkedWalk* parked_walk, Queue* queue, TupleTableSlot* parked) {
  auto* foresight = static_cast<Foresight*>(parked_walk);
  bool swaps = queue->taken >= queue->concurrency;
  const OpenJob* worst = swaps ? &queue->open[queue->open_count - 1] : nullptr;
  if (swaps && is_locked(*foresight, worst->tid)) return Step::kEnded;
  if (TransactionIdIsValid(locker_of(parked))) return Step::kLocked;
  int64 id = DatumGetInt64(value_of(parked, kJobId));
  note_id(&foresight->opened, id);
  if (swaps) {
    note_id(&foresight->parked, worst->id);
    queue->open_count--;
  } else {
    give_place(queue, id);
  }
  return id == foresight->wanted ? Step::kEnded : Step::kOpened;
}

// Asks only whether there is a job to open.
struct QuestionWalk : ParkedWalk {
  bool is_met;
};

Step meet_once(ParkedWalk* walk, Queue*, TupleTableSlot*) {
  static_cast<QuestionWalk*>(walk)->is_met = true;
  return Step::kEnded;
}

}  // namespace

bool walk_parked(Queue* queue, ParkedWalk* walk) {
  if (!queue->strict) return walk_lowest(queue, walk);
  IndexLookup successors;
  bool is_left = find_successor(&successors, *queue, walk->job, walk->snapshot)
                     ? walk_successor(queue, walk, successors.row)
                     : walk_lowest(queue, walk);
  close_index_lookup(&successors);
  return is_left;
}

OpeningWalk opening_walk(JobTable* table, PlacedJobs* placed, int starts_left) {
  ParkedWalk walk = {table->relation, table->snapshot, placed, open_next, false};
  return {walk, table, starts_left, false};
}

Foresight foreseeing_walk(Relation job, Snapshot snapshot, int64 wanted) {
  return {{job, snapshot, nullptr, foresee_next, false}, wanted, nullptr, nullptr};
}

bool would_open(Relation job, Snapshot snapshot, Queue* queue, bool* due) {
  QuestionWalk walk = {{job, snapshot, nullptr, meet_once, false}, false};
  *due = walk_parked(queue, &walk);
  return walk.is_met;
}

bool open_job(JobTable* table, const ItemPointerData& tid) {
  if (!change_state(table, tid, catalog()->state_ready)) return false;
  note_ready(DatumGetTextPP(value_of(table->changed, kJobIdentifier)),
             DatumGetTimestampTz(value_of(table->changed, kJobRunAt)));
  return true;
}

}  // namespace pulse
