#include "queue/remembered_queue.hpp"

#include "access/catalog.hpp"
#include "server/advisory_lock.hpp"
#include "server/clocks.hpp"
#include "server/values.hpp"
#include "shared/memory.hpp"
#include "shared/queue_name.hpp"

namespace pulse {
namespace {

constexpr int kQueuesPerGroup = 2;
// A promotion that passes all dead entries takes at most a fiftieth of the time between two such
// promotions.
constexpr int64 kPassShare = 50;
constexpr int64 kMinExpiryUs = 1000000;
constexpr int64 kMaxExpiryUs = 60000000;

// Queues share a group by a hash of the queue bucket. Guard of both other fields: `lock`.
struct ParkedGroup {
  slock_t lock;
  uint64 generation;  // number of commits that parked a job of a queue in this group
  RememberedQueue queue[kQueuesPerGroup];
};

ParkedGroup* groups = nullptr;

ParkedGroup* group_at(const DatabaseState* database, int group) {
  return &groups[entry_number(database) * kParkedGroups + group];
}

// NULL when this server remembers no queues.
ParkedGroup* group_of_bucket(int bucket) {
  DatabaseState* database = groups ? this_database() : nullptr;
  return database ? group_at(database, parked_group(bucket)) : nullptr;
}

bool is_too_old(const RememberedQueue& queue, TimestampTz now) {
  // A time far ahead comes from a clock that was set back since.
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

// The entry of the queue, else an entry that is free or expires first. Requires ParkedGroup::lock.
RememberedQueue* place_for(ParkedGroup* group, uint64 queue) {
  Assert(holds_spin(&group->lock));
  RememberedQueue* place = group->queue;
  for (RememberedQueue& known : group->queue) {
    if (known.queue == queue) return &known;
    if (known.expires < place->expires) place = &known;
  }
  return place;
}

}  // namespace

Size remembered_queues_size(int databases) {
  return mul_size(mul_size(databases, kParkedGroups), sizeof(ParkedGroup));
}

void create_remembered_queues(int databases) {
  groups = static_cast<ParkedGroup*>(shared_area(
      "pg_pulse remembered queues", remembered_queues_size(databases), [](void* area, Size size) {
        memset(area, 0, size);
        auto* all = static_cast<ParkedGroup*>(area);
        for (Size i = 0; i < size / sizeof(ParkedGroup); i++) SpinLockInit(&all[i].lock);
      }));
}

void reset_remembered_queues(int database) {
  for (int i = 0; groups && i < kParkedGroups; i++) {
    ParkedGroup* group = &groups[database * kParkedGroups + i];
    lock_spin(&group->lock);
    memset(group->queue, 0, sizeof(group->queue));
    unlock_spin(&group->lock);
  }
}

uint64 remembered_generation(int bucket) {
  ParkedGroup* group = group_of_bucket(bucket);
  if (!group) return 0;
  lock_spin(&group->lock);
  uint64 generation = group->generation;
  unlock_spin(&group->lock);
  return generation;
}

bool recall_queue(Datum name, int bucket, RememberedQueue* found) {
  ParkedGroup* group = group_of_bucket(bucket);
  if (!group) return false;
  Assert(holds_advisory_lock(LockKind::kQueue, fnv1a(DatumGetTextPP(name)), ExclusiveLock));
  uint64 queue = queue_identity(name);
  found->queue = 0;
  lock_spin(&group->lock);
  for (const RememberedQueue& known : group->queue)
    if (known.queue == queue) *found = known;
  unlock_spin(&group->lock);
  if (found->queue == 0 || is_too_old(*found, wall_now()) || !has_committed(found->writer))
    return false;
  const FirstParked& own = made_parked();
  int at = parked_group(bucket);
  if ((own.bits >> at) & 1) lower_front(found, own.at[at]);
  return true;
}

void remember_queue(Datum name, int bucket, uint64 generation, TimestampTz started,
                    RememberedQueue queue) {
  ParkedGroup* group = group_of_bucket(bucket);
  if (!group) return;
  Assert(holds_advisory_lock(LockKind::kQueue, fnv1a(DatumGetTextPP(name)), ExclusiveLock));
  queue.queue = queue_identity(name);
  queue.writer = TransactionIdIsValid(GetTopTransactionIdIfAny()) ? GetCurrentTransactionId()
                                                                  : InvalidTransactionId;
  TimestampTz now = wall_now();
  if (started)
    queue.expires = now + Min(Max((now - started) * kPassShare, kMinExpiryUs), kMaxExpiryUs);
  lock_spin(&group->lock);
  bool is_current = group->generation == generation;
  if (is_current) *place_for(group, queue.queue) = queue;
  unlock_spin(&group->lock);
  if (!is_current) forget_queue(name, bucket);
}

void forget_queue(Datum name, int bucket) {
  ParkedGroup* group = group_of_bucket(bucket);
  if (!group) return;
  uint64 queue = queue_identity(name);
  lock_spin(&group->lock);
  for (RememberedQueue& known : group->queue)
    if (known.queue == queue) known = {};
  unlock_spin(&group->lock);
}

void lower_fronts_to(const FirstParked& parked) {
  DatabaseState* database = this_database_if_known();
  if (!groups || !database) return;
  for (uint64 bits = parked.bits; bits; bits &= bits - 1) {
    int at = __builtin_ctzll(bits);
    ParkedGroup* group = group_at(database, at);
    lock_spin(&group->lock);
    group->generation++;
    for (RememberedQueue& known : group->queue) lower_front(&known, parked.at[at]);
    unlock_spin(&group->lock);
  }
}

}  // namespace pulse
