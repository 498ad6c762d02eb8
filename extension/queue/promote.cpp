#include "queue/promote.hpp"

#include "access/catalog.hpp"
#include "access/columns.hpp"
#include "access/index_lookup.hpp"
#include "access/ordered_scan.hpp"
#include "job/job_table.hpp"
#include "queue/queue_marks.hpp"
#include "server/advisory_lock.hpp"
#include "server/clocks.hpp"
#include "server/compat.hpp"
#include "server/hash.hpp"
#include "server/settings.hpp"
#include "server/shared_memory.hpp"
#include "wake/pending_wakes.hpp"

namespace pulse {
namespace {

constexpr int kFallenDueAtOnce = 1000;

// How many more jobs may be promoted, and what remains.
struct PromotionBudget {
  int room;
  Promotion left;
};

struct OpenJob {
  ItemPointerData tid;
  int16 priority;
  TimestampTz run_at;
  int64 id;
};

struct Queue {
  Datum name;
  int slot;
  int concurrency;
  bool paused;
  int taken;      // jobs that use a slot of the queue: open or running
  OpenJob* open;  // the open jobs that no claim has taken, best first
  int open_count;
};

void read_settings(Queue* queue, Snapshot snapshot) {
  queue->concurrency = 1;
  queue->paused = false;
  Relation table = table_open(catalog()->queue, AccessShareLock);
  Relation index = index_open(catalog()->queue_key, AccessShareLock);
  TupleTableSlot* slot = table_slot_create(table, nullptr);
  ScanKeyData key;
  init_text_key(&key, 1, BTEqualStrategyNumber, F_TEXTEQ, queue->name);
  IndexScanDesc scan = begin_index_scan(table, index, snapshot, 1);
  index_rescan(scan, &key, 1, nullptr, 0);
  if (index_getnext_slot(scan, ForwardScanDirection, slot)) {
    bool isnull;
    queue->concurrency = DatumGetInt32(slot_getattr(slot, kQueueConcurrency, &isnull));
    queue->paused = DatumGetBool(slot_getattr(slot, kQueuePaused, &isnull));
  }
  index_endscan(scan);
  ExecDropSingleTupleTableSlot(slot);
  index_close(index, AccessShareLock);
  table_close(table, AccessShareLock);
}

bool is_better(const OpenJob& a, const OpenJob& b) {
  if (a.priority != b.priority) return a.priority < b.priority;
  if (a.run_at != b.run_at) return a.run_at < b.run_at;
  return a.id < b.id;
}

void add_open(Queue* queue, TupleTableSlot* slot) {
  bool isnull;
  OpenJob open_job = {slot->tts_tid, DatumGetInt16(slot_getattr(slot, kJobPriority, &isnull)),
                      DatumGetTimestampTz(slot_getattr(slot, kJobRunAt, &isnull)),
                      DatumGetInt64(slot_getattr(slot, kJobId, &isnull))};
  int capacity = 8;
  while (capacity < queue->open_count) capacity *= 2;
  if (!queue->open)
    queue->open = static_cast<OpenJob*>(palloc(sizeof(OpenJob) * capacity));
  else if (queue->open_count == capacity)
    queue->open = static_cast<OpenJob*>(repalloc(queue->open, sizeof(OpenJob) * capacity * 2));
  int position = queue->open_count++;
  for (; position > 0 && is_better(open_job, queue->open[position - 1]); position--)
    queue->open[position] = queue->open[position - 1];
  queue->open[position] = open_job;
}

void read_open_jobs(Queue* queue, Relation job, Snapshot snapshot) {
  queue->taken = queue->open_count = 0;
  queue->open = nullptr;
  Relation index = index_open(catalog()->job_open_idx, AccessShareLock);
  TupleTableSlot* slot = table_slot_create(job, nullptr);
  ScanKeyData key;
  init_text_key(&key, 1, BTEqualStrategyNumber, F_TEXTEQ, queue->name);
  IndexScanDesc scan = begin_index_scan(job, index, snapshot, 1);
  index_rescan(scan, &key, 1, nullptr, 0);
  while (index_getnext_slot(scan, ForwardScanDirection, slot)) {
    CHECK_FOR_INTERRUPTS();
    bool isnull;
    queue->taken++;
    if (DatumGetObjectId(slot_getattr(slot, kJobState, &isnull)) == catalog()->state_ready)
      add_open(queue, slot);
  }
  index_endscan(scan);
  ExecDropSingleTupleTableSlot(slot);
  index_close(index, AccessShareLock);
}

bool change_state(JobTable* table, TupleTableSlot* seen, Oid state) {
  if (!try_lock_row(table, seen->tts_tid)) return false;
  JobChange change = {};
  change.set_waiting(state);
  update_locked_row(table, &change);
  return true;
}

bool open_parked_job(JobTable* table, OrderedScan* parked) {
  bool isnull;
  text* identifier = DatumGetTextPP(slot_getattr(parked->slot, kJobIdentifier, &isnull));
  if (!change_state(table, parked->slot, catalog()->state_ready)) return false;
  note_ready(VARDATA_ANY(identifier), VARSIZE_ANY_EXHDR(identifier), parked->run_at);
  return true;
}

// Parks the worst_job open job because a is_better one is parked. False when a claim is taking it.
bool park_worst(JobTable* table, Queue* queue) {
  TupleTableSlot* slot = table_slot_create(table->relation, nullptr);
  OpenJob worst_job = queue->open[--queue->open_count];
  bool parked =
      table_tuple_fetch_row_version(table->relation, &worst_job.tid, table->snapshot, slot) &&
      change_state(table, slot, catalog()->state_parked);
  ExecDropSingleTupleTableSlot(slot);
  return parked;
}

bool precedes_worst(const Queue& queue, const OrderedScan& parked) {
  if (queue.open_count == 0) return false;
  OpenJob waiting = {{}, parked.priority, parked.run_at, parked.id};
  return is_better(waiting, queue.open[queue.open_count - 1]);
}

void start_parked_scan(OrderedScan* parked, Relation job, Relation index, Snapshot snapshot,
                       const Queue& queue) {
  memset(parked, 0, sizeof(*parked));
  parked->relation = job;
  parked->index = index;
  parked->snapshot = snapshot;
  parked->now = wall_now();
  fix_int2(parked, static_cast<int16>(queue.slot));
  parked->state = catalog()->state_parked;
  fix_text(parked, queue.name);
}

void open_lowest(JobTable* table, Relation index, Queue* queue, PromotionBudget* budget) {
  OrderedScan parked;
  start_parked_scan(&parked, table->relation, index, table->snapshot, *queue);
  for (bool due = first_due_in_order(&parked); due; due = next_due_in_order(&parked)) {
    bool full = queue->taken >= queue->concurrency;
    if (full && (queue->taken > queue->concurrency || !precedes_worst(*queue, parked))) break;
    if (budget->room <= 0) {
      return_queue_mark(queue->slot);
      budget->left.more = true;
      break;
    }
    if (full) {
      // Each swap opens a is_better job than it parks, so the loop ends.
      if (!park_worst(table, queue)) {
        return_queue_mark(queue->slot);
        break;
      }
      queue->taken--;
    }
    if (open_parked_job(table, &parked)) {
      queue->taken++;
      budget->room--;
    }
  }
  if (parked.next_due) note_parked_due(parked.next_due);
  end_ordered_scan(&parked);
}

void promote_queue(Datum name, int slot, PromotionBudget* budget) {
  text* label = DatumGetTextPP(name);
  uint64 hash = fnv1a(VARDATA_ANY(label), VARSIZE_ANY_EXHDR(label));
  if (!try_advisory_lock(LockKind::kQueue, hash, ExclusiveLock)) {
    return_queue_mark(slot);
    budget->left.busy = true;
    return;
  }
  // The lock precedes the snapshot, so the snapshot shows every promotion committed before.
  JobTable table;
  open_job_table(&table);
  Relation index = index_open(catalog()->job_parked_idx, AccessShareLock);
  Queue queue = {};
  queue.name = name;
  queue.slot = slot;
  read_settings(&queue, table.snapshot);
  if (!queue.paused) {
    read_open_jobs(&queue, table.relation, table.snapshot);
    open_lowest(&table, index, &queue, budget);
  }
  index_close(index, AccessShareLock);
  close_job_table(&table);
}

// True when promotion would change something, judged without the queue's lock.
bool wants_promotion(Relation job, Relation index, Snapshot snapshot, Queue* queue) {
  read_settings(queue, snapshot);
  if (queue->paused) return false;
  read_open_jobs(queue, job, snapshot);
  OrderedScan parked;
  start_parked_scan(&parked, job, index, snapshot, *queue);
  bool due = first_due_in_order(&parked);
  bool wanted = due && (queue->taken < queue->concurrency ||
                        (queue->taken == queue->concurrency && precedes_worst(*queue, parked)));
  if (parked.next_due) note_parked_due(parked.next_due);
  end_ordered_scan(&parked);
  return wanted;
}

// One step of a skip scan over the parked index: finds the first queue after (slot, name).
bool next_queue(IndexScanDesc scan, TupleTableSlot* row, int* slot, Datum* name, bool same_slot,
                MemoryContext keep) {
  ScanKeyData keys[2];
  ScanKeyInit(&keys[0], 1, BTEqualStrategyNumber, F_INT2EQ,
              Int16GetDatum(static_cast<int16>(*slot)));
  init_text_key(&keys[1], 2, BTGreaterStrategyNumber, F_TEXT_GT, *name);
  index_rescan(scan, keys, 2, nullptr, 0);
  bool found = index_getnext_slot(scan, ForwardScanDirection, row);
  if (!found && same_slot) return false;
  if (!found) {
    ScanKeyInit(&keys[0], 1, BTGreaterStrategyNumber, F_INT2GT,
                Int16GetDatum(static_cast<int16>(*slot)));
    init_text_key(&keys[1], 2, BTGreaterEqualStrategyNumber, F_TEXT_GE,
                  PointerGetDatum(cstring_to_text("")));
    index_rescan(scan, keys, 2, nullptr, 0);
    if (!index_getnext_slot(scan, ForwardScanDirection, row)) return false;
  }
  bool isnull;
  MemoryContext old = MemoryContextSwitchTo(keep);
  *name = PointerGetDatum(DatumGetTextPCopy(slot_getattr(row, kJobQueueName, &isnull)));
  MemoryContextSwitchTo(old);
  *slot = queue_slot(DatumGetTextPP(*name));
  return true;
}

void promote_queues_of_slot(int slot, PromotionBudget* budget) {
  Relation job = table_open(catalog()->job, AccessShareLock);
  Relation index = index_open(catalog()->job_parked_idx, AccessShareLock);
  CommandCounterIncrement();
  Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
  TupleTableSlot* row = table_slot_create(job, nullptr);
  IndexScanDesc scan = begin_index_scan(job, index, snapshot, 2);
  Datum name = PointerGetDatum(cstring_to_text(""));
  int at = slot;
  while (next_queue(scan, row, &at, &name, true, CurrentMemoryContext)) {
    CHECK_FOR_INTERRUPTS();
    promote_queue(name, slot, budget);
  }
  index_endscan(scan);
  ExecDropSingleTupleTableSlot(row);
  UnregisterSnapshot(snapshot);
  index_close(index, AccessShareLock);
  table_close(job, AccessShareLock);
}

}  // namespace

Promotion promote_marked(int room, int max_marks) {
  PromotionBudget budget = {room, {false, false}};
  // Takes one mark at a time, so that the mark of an unchecked queue stays set.
  for (int checked_count = 0; checked_count < max_marks && budget.room > 0; checked_count++) {
    int slot;
    if (!take_queue_mark(&slot)) break;
    promote_queues_of_slot(slot, &budget);
  }
  budget.left.more |= queue_marks_remain();
  return budget.left;
}

void mark_fallen_due() {
  DatabaseState* database = queue_state();
  TimestampTz now = wall_now();
  if (!database || pg_atomic_read_u64(&database->parked_due) > static_cast<uint64>(now)) return;
  FallenDueScan fallen_due = begin_fallen_due_scan(database);
  Relation job = table_open(catalog()->job, AccessShareLock);
  Relation index = index_open(catalog()->job_parked_due_idx, AccessShareLock);
  Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
  TupleTableSlot* row = table_slot_create(job, nullptr);
  ScanKeyData key;
  ScanKeyInit(&key, 1, BTGreaterStrategyNumber, F_TIMESTAMPTZ_GT,
              TimestampTzGetDatum(fallen_due.seen_until));
  IndexScanDesc scan = begin_index_scan(job, index, snapshot, 1);
  index_rescan(scan, &key, 1, nullptr, 0);
  int marked = 0;
  while (index_getnext_slot(scan, ForwardScanDirection, row)) {
    CHECK_FOR_INTERRUPTS();
    bool isnull;
    TimestampTz run_at = DatumGetTimestampTz(slot_getattr(row, kJobRunAt, &isnull));
    // At the limit the rest is left to the next scan, which is due at once.
    if (run_at > now || (marked >= kFallenDueAtOnce && run_at > fallen_due.seen_until)) {
      lower_due(&database->parked_due, run_at);
      break;
    }
    fallen_due.seen_until = run_at;
    marked++;
    mark_queue(database, queue_slot(DatumGetTextPP(slot_getattr(row, kJobQueueName, &isnull))));
  }
  end_fallen_due_scan(database, fallen_due);
  index_endscan(scan);
  ExecDropSingleTupleTableSlot(row);
  UnregisterSnapshot(snapshot);
  index_close(index, AccessShareLock);
  table_close(job, AccessShareLock);
}

// Marks the queue if promotion would change something; without shared memory, promotes it. True in
// either case.
static bool mark_if_promotable(DatabaseState* database, Relation job, Relation index,
                               Snapshot snapshot, Datum name, int slot) {
  Queue queue = {};
  queue.name = name;
  queue.slot = slot;
  if (!wants_promotion(job, index, snapshot, &queue)) return false;
  PromotionBudget unbounded_budget = {kFallenDueAtOnce, {false, false}};
  if (database)
    mark_queue(database, slot);
  else
    promote_queue(name, slot, &unbounded_budget);
  return true;
}

int reconcile_queues(int max_count) {
  static int next_slot = 0;  // where the next bounded call continues
  DatabaseState* database = queue_state();
  if (max_count == 0) record_full_check(database);
  CommandCounterIncrement();
  Relation job = table_open(catalog()->job, AccessShareLock);
  Relation index = index_open(catalog()->job_parked_idx, AccessShareLock);
  Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
  TupleTableSlot* row = table_slot_create(job, nullptr);
  IndexScanDesc scan = begin_index_scan(job, index, snapshot, 2);
  MemoryContext step =
      AllocSetContextCreate(CurrentMemoryContext, "pulse reconcile", ALLOCSET_DEFAULT_SIZES);
  Datum name = PointerGetDatum(cstring_to_text(""));
  int slot = max_count == 0 ? 0 : next_slot;
  int checked_count = 0;
  int marked = 0;
  while (max_count == 0 || checked_count++ < max_count) {
    CHECK_FOR_INTERRUPTS();
    if (!next_queue(scan, row, &slot, &name, false, CurrentMemoryContext)) {
      slot = 0;
      break;
    }
    MemoryContext old = MemoryContextSwitchTo(step);
    marked += mark_if_promotable(database, job, index, snapshot, name, slot);
    MemoryContextSwitchTo(old);
    MemoryContextReset(step);
  }
  next_slot = slot;
  MemoryContextDelete(step);
  index_endscan(scan);
  ExecDropSingleTupleTableSlot(row);
  UnregisterSnapshot(snapshot);
  index_close(index, AccessShareLock);
  table_close(job, AccessShareLock);
  return marked;
}

}  // namespace pulse

PULSE_FUNCTION(pulse_reconcile_queues) {
  PG_RETURN_INT32(pulse::reconcile_queues(PG_GETARG_INT32(0)));
}

PULSE_FUNCTION(pulse_promote_marked) {
  pulse::mark_fallen_due();
  PG_RETURN_BOOL(pulse::promote_marked(PG_GETARG_INT32(0), PG_GETARG_INT32(0)).more);
}
