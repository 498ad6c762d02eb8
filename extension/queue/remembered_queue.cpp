#include "queue/remembered_queue.hpp"

#include "access/catalog.hpp"
#include "server/clocks.hpp"
#include "shared/memory.hpp"
#include "shared/queue_name.hpp"

namespace pulse {
namespace {

constexpr int kQueuesPerBucket = 2;
// A promotion that passes all dead entries takes at most a fiftieth of the time between two such
// promotions.
constexpr int64 kPassShare = 50;
constexpr int64 kMinExpiryUs = 1000000;
constexpr int64 kMaxExpiryUs = 60000000;

// Queues share a bucket by a hash of the queue slot. `lock` guards both other fields.
struct Bucket {
  slock_t lock;
  uint64 generation;  // number of commits that parked a job of a queue in this bucket
  RememberedQueue queue[kQueuesPerBucket];
};

Bucket* buckets = nullptr;

Bucket* parked_bucket_at(const DatabaseState* database, int bucket) {
  return &buckets[slot_of_database(database) * kParkedBuckets + bucket];
}

// NULL when this server remembers no queues.
Bucket* bucket_of_slot(int slot) {
  DatabaseState* database = buckets ? this_database() : nullptr;
  return database ? parked_bucket_at(database, parked_bucket(slot)) : nullptr;
}

bool is_too_old(const RememberedQueue& queue, TimestampTz now) {
  // A time far ahead comes from a clock that was turned back since.
  return queue.expires <= now || queue.expires - now > kMaxExpiryUs;
}

bool has_committed(TransactionId writer) {
  return !TransactionIdIsValid(writer) || TransactionIdIsCurrentTransactionId(writer) ||
         TransactionIdDidCommit(writer);
}

JobOrder as_order(const ParkedKey& key) { return {key.priority, key.run_at, PG_INT64_MIN}; }

void lower_front(RememberedQueue* queue, const ParkedKey& key) {
  JobOrder parked = as_order(key);
  if (sorts_before(&parked, &queue->front)) queue->front = parked;
}

// The entry of the queue, else an entry that is free or expires first.
RememberedQueue* place_for(Bucket* bucket, uint64 queue) {
  RememberedQueue* place = bucket->queue;
  for (RememberedQueue& known : bucket->queue) {
    if (known.queue == queue) return &known;
    if (known.expires < place->expires) place = &known;
  }
  return place;
}

}  // namespace

Size remembered_queues_size(int databases) {
  return mul_size(mul_size(databases, kParkedBuckets), sizeof(Bucket));
}

void create_remembered_queues(int databases) {
  buckets = static_cast<Bucket*>(shared_area(
      "pg_pulse remembered queues", remembered_queues_size(databases), [](void* area, Size size) {
        memset(area, 0, size);
        auto* all = static_cast<Bucket*>(area);
        for (Size i = 0; i < size / sizeof(Bucket); i++) SpinLockInit(&all[i].lock);
      }));
}

void reset_remembered_queues(int database) {
  for (int i = 0; buckets && i < kParkedBuckets; i++) {
    Bucket* bucket = &buckets[database * kParkedBuckets + i];
    lock_spin(&bucket->lock);
    memset(bucket->queue, 0, sizeof(bucket->queue));
    unlock_spin(&bucket->lock);
  }
}

uint64 remembered_generation(int slot) {
  Bucket* bucket = bucket_of_slot(slot);
  if (!bucket) return 0;
  lock_spin(&bucket->lock);
  uint64 generation = bucket->generation;
  unlock_spin(&bucket->lock);
  return generation;
}

bool recall_queue(Datum name, int slot, RememberedQueue* found) {
  Bucket* bucket = bucket_of_slot(slot);
  if (!bucket) return false;
  uint64 queue = queue_identity(name);
  found->queue = 0;
  lock_spin(&bucket->lock);
  for (const RememberedQueue& known : bucket->queue)
    if (known.queue == queue) *found = known;
  unlock_spin(&bucket->lock);
  if (found->queue == 0 || is_too_old(*found, wall_now()) || !has_committed(found->writer))
    return false;
  const FirstParked& own = made_parked();
  int at = parked_bucket(slot);
  if ((own.bits >> at) & 1) lower_front(found, own.at[at]);
  return true;
}

void remember_queue(Datum name, int slot, uint64 generation, TimestampTz started,
                    RememberedQueue queue) {
  Bucket* bucket = bucket_of_slot(slot);
  if (!bucket) return;
  queue.queue = queue_identity(name);
  queue.writer = TransactionIdIsValid(GetTopTransactionIdIfAny()) ? GetCurrentTransactionId()
                                                                  : InvalidTransactionId;
  TimestampTz now = wall_now();
  if (started)
    queue.expires = now + Min(Max((now - started) * kPassShare, kMinExpiryUs), kMaxExpiryUs);
  lock_spin(&bucket->lock);
  bool is_current = bucket->generation == generation;
  if (is_current) *place_for(bucket, queue.queue) = queue;
  unlock_spin(&bucket->lock);
  if (!is_current) forget_queue(name, slot);
}

void forget_queue(Datum name, int slot) {
  Bucket* bucket = bucket_of_slot(slot);
  if (!bucket) return;
  uint64 queue = queue_identity(name);
  lock_spin(&bucket->lock);
  for (RememberedQueue& known : bucket->queue)
    if (known.queue == queue) known = {};
  unlock_spin(&bucket->lock);
}

void lower_fronts_to(const FirstParked& parked) {
  DatabaseState* database = this_database_if_known();
  if (!buckets || !database) return;
  for (uint64 bits = parked.bits; bits; bits &= bits - 1) {
    int at = __builtin_ctzll(bits);
    Bucket* bucket = parked_bucket_at(database, at);
    lock_spin(&bucket->lock);
    bucket->generation++;
    for (RememberedQueue& known : bucket->queue) lower_front(&known, parked.at[at]);
    unlock_spin(&bucket->lock);
  }
}

}  // namespace pulse
