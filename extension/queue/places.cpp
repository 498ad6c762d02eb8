#include "queue/places.hpp"

#include "access/catalog.hpp"
#include "access/columns.hpp"
#include "access/index_lookup.hpp"
#include "job/table.hpp"
#include "server/advisory_lock.hpp"
#include "server/values.hpp"

namespace pulse {
namespace {

void add_open(Queue* queue, TupleTableSlot* row) {
  if (queue->open_count == queue->open_capacity) {
    queue->open_capacity *= 2;
    queue->open =
        static_cast<OpenJob*>(repalloc(queue->open, sizeof(OpenJob) * queue->open_capacity));
  }
  OpenJob open_job = {order_of(row), row->tts_tid,
                      queue->strict ? succession_of(row) : kNoSuccession};
  int position = queue->open_count++;
  for (; position > 0 && sorts_before(&open_job, &queue->open[position - 1]); position--)
    queue->open[position] = queue->open[position - 1];
  queue->open[position] = open_job;
}

void add_taken(Queue* queue, TupleTableSlot* row) {
  give_place(queue, DatumGetInt64(value_of(row, kJobId)));
  if (DatumGetObjectId(value_of(row, kJobState)) == catalog()->state_ready) add_open(queue, row);
}

bool has_place(TupleTableSlot* row, const Queue& queue) {
  NullableDatum name = field_of(row, kJobQueueName);
  return DatumGetObjectId(value_of(row, kJobState)) != catalog()->state_parked && !name.isnull &&
         is_same_text(name.value, queue.name);
}

void read_recalled_jobs(Queue* queue, Relation job, Snapshot snapshot) {
  RememberedQueue recalled = queue->known;
  IndexLookup jobs;
  open_index_lookup(&jobs, job, catalog()->job_key, snapshot);
  for (int i = 0; i < recalled.count; i++)
    if (find_id(&jobs, recalled.ids[i]) && has_place(jobs.row, *queue)) add_taken(queue, jobs.row);
  close_index_lookup(&jobs);
}

void read_open_jobs(Queue* queue, Relation job, Snapshot snapshot) {
  IndexLookup jobs;
  open_index_lookup(&jobs, job, catalog()->job_open_idx, snapshot, 1);
  ScanKeyData key;
  init_text_key(&key, 1, BTEqualStrategyNumber, F_TEXTEQ, queue->name);
  seek_keys(&jobs, &key);
  while (next_row(&jobs)) {
    CHECK_FOR_INTERRUPTS();
    add_taken(queue, jobs.row);
  }
  close_index_lookup(&jobs);
}

// Counts the jobs of this queue that the claim has placed before.
void add_placed(Queue* queue, PlacedJobs* placed) {
  for (int i = 0; placed && i < placed->count; i++) {
    PlacedJob* job = &placed->job[i];
    if (job->bucket != queue->bucket || !is_same_text(job->queue_name, queue->name)) continue;
    give_place(queue, job->id);
    job->was_met = true;
  }
}

int placed_within(const void* jobs, const Level& level) {
  const auto* placed = static_cast<const PlacedJobs*>(jobs);
  int within = 0;
  for (int i = 0; i < placed->count; i++) {
    const text* name = DatumGetTextPP(placed->job[i].queue_name);
    LevelNames levels = level_names(name);
    for (int j = 0; j < levels.count; j++)
      within += fnv1a(VARDATA_ANY(name), levels.length[j]) == level.hash;
  }
  return within;
}

}  // namespace

int succession_of(TupleTableSlot* row) {
  NullableDatum succession = field_of(row, kJobSuccession);
  return succession.isnull ? kNoSuccession : DatumGetInt16(succession.value);
}

UnshownPlaces unshown_places(PlacedJobs* placed) { return {placed, placed_within}; }

bool try_place(PlacedJobs* placed, TupleTableSlot* parked, Datum queue_name, int bucket) {
  if (!placed || placed->count == kMaxPlaced || !placed->may_claim(placed->claim, parked))
    return false;
  // By the id remember_queue() recognizes a promotion that was undone.
  (void)GetCurrentTransactionId();
  Assert(holds_advisory_lock(LockKind::kQueue, fnv1a(DatumGetTextPP(queue_name)), ExclusiveLock));
  int position = placed->count++;
  JobOrder order = order_of(parked);
  for (; position > 0 && sorts_before(&order, &placed->job[position - 1]); position--)
    placed->job[position] = placed->job[position - 1];
  placed->job[position] = {order,
                           parked->tts_tid,
                           datumCopy(value_of(parked, kJobIdentifier), false, -1),
                           datumCopy(queue_name, false, -1),
                           bucket,
                           false};
  return true;
}

bool is_placed(const PlacedJobs* placed, int64 id) {
  for (int i = 0; placed && i < placed->count; i++)
    if (placed->job[i].id == id) return true;
  return false;
}

void give_place(Queue* queue, int64 id) {
  if (queue->taken < kRememberedPlaces) queue->known.ids[queue->taken] = id;
  queue->taken++;
}

Queue find_places(const Admission& admission, Relation job, Snapshot snapshot, PlacedJobs* placed,
                  bool recalls) {
  constexpr int kCapacity = 8;
  Queue queue = {};
  queue.name = admission.queue.name;
  queue.bucket = admission.queue.bucket;
  queue.concurrency = admission.levels.concurrency;
  queue.strict = admission.levels.strict;
  queue.open_capacity = kCapacity;
  queue.open = static_cast<OpenJob*>(palloc(sizeof(OpenJob) * kCapacity));
  const Level& own = admission.levels.level[admission.levels.count - 1];
  queue.known.queue = own.identity;
  queue.is_recalled = recalls && recall_queue(own.hash, &queue.known);
  if (queue.is_recalled)
    read_recalled_jobs(&queue, job, snapshot);
  else
    read_open_jobs(&queue, job, snapshot);
  add_placed(&queue, placed);
  int places_left = admission.levels.places_left;
  queue.is_level_bound = places_left < queue.concurrency - queue.taken;
  if (queue.is_level_bound) queue.concurrency = queue.taken + places_left;
  return queue;
}

bool lacks_places(const Queue& queue) {
  return queue.is_level_bound && queue.taken >= queue.concurrency;
}

}  // namespace pulse
