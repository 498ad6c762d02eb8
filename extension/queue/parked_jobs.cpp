#include "queue/parked_jobs.hpp"

#include "access/catalog.hpp"
#include "server/clocks.hpp"
#include "server/values.hpp"
#include "wake/pending_wakes.hpp"

namespace pulse {
namespace {

// False when a claim is taking the job.
bool change_state(JobTable* table, const ItemPointerData& seen, Oid state) {
  if (!try_lock_row(table, seen)) return false;
  JobChange change = {};
  change.set_waiting(state);
  update_locked_row(table, &change);
  return true;
}

bool open_parked_job(JobTable* table, OrderedScan* parked) {
  text* identifier = DatumGetTextPP(value_of(parked->slot, kJobIdentifier));
  if (!change_state(table, parked->slot->tts_tid, catalog()->state_ready)) return false;
  note_ready(identifier, parked->run_at);
  return true;
}

// Opens the parked job in place of the queue's worst open one. A lock on either row leaves both as
// they are. False when a claim is taking the open one.
bool swap_worst(JobTable* table, Queue* queue, OrderedScan* parked) {
  const OpenJob& worst = queue->open[queue->open_count - 1];
  if (!try_lock_row(table, worst.tid)) return false;
  if (!open_parked_job(table, parked)) return true;
  queue->open_count--;
  if (!change_state(table, worst.tid, catalog()->state_parked)) elog(ERROR, "lost a row lock");
  note_parked(queue->slot, {worst.priority, worst.run_at});
  return true;
}

}  // namespace

bool begin_parked_scan(OrderedScan* parked, Relation job, Snapshot snapshot, const Queue& queue) {
  memset(parked, 0, sizeof(*parked));
  parked->relation = job;
  parked->index = index_open(catalog()->job_parked_idx, AccessShareLock);
  parked->snapshot = snapshot;
  parked->now = wall_now();
  parked->state = catalog()->state_parked;
  parked->prefix = 1;
  ScanKeyInit(&parked->keys[0], 1, BTEqualStrategyNumber, F_INT2EQ,
              Int16GetDatum(static_cast<int16>(queue.slot)));
  fix_text(parked, queue.name);
  return queue.is_recalled ? first_due_from(parked, queue.known.front) : first_due_in_order(parked);
}

void end_parked_scan(OrderedScan* parked) {
  if (parked->next_due) note_parked_due(parked->next_due);
  end_ordered_scan(parked);
  index_close(parked->index, AccessShareLock);
}

bool open_lowest(JobTable* table, Queue* queue, PromotionBudget* budget) {
  OrderedScan parked;
  bool has_swapped = false;
  bool due = begin_parked_scan(&parked, table->relation, table->snapshot, *queue);
  for (; due && may_open(*queue, parked); due = next_due_in_order(&parked)) {
    if (budget->room <= 0) {
      return_mark(queue->slot);
      budget->more = true;
      break;
    }
    if (queue->taken >= queue->concurrency) {
      if (!swap_worst(table, queue, &parked)) {
        return_mark(queue->slot);
        break;
      }
      has_swapped = true;
      budget->room--;
    } else if (open_parked_job(table, &parked)) {
      give_place(queue, parked.id);
      budget->room--;
    } else {
      leave_in_order(&parked);
    }
  }
  if (due) leave_in_order(&parked);
  constexpr JobOrder kEnd = {PG_INT16_MAX, PG_INT64_MAX, PG_INT64_MAX};
  queue->known.front = parked.has_left ? parked.left : kEnd;
  // After a swap, what was read of places no longer holds.
  queue->known.count = has_swapped ? PG_INT32_MAX : queue->taken;
  end_parked_scan(&parked);
  return due;
}

}  // namespace pulse
