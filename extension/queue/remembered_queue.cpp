#include "queue/remembered_queue.hpp"

#include "access/catalog.hpp"
#include "server/advisory_lock.hpp"
#include "server/clocks.hpp"
#include "server/values.hpp"
#include "shared/database_area.hpp"
#include "shared/queue_name.hpp"
#include "wake/pending_wakes.hpp"

namespace pulse {
namespace {

constexpr int kQueuesPerGroup = 2;

// Queues share a group by a hash of the queue bucket. Guard: FrontBucket::lock.
struct ParkedGroup : FrontBucket {
  RememberedQueue queue[kQueuesPerGroup];
};

DatabaseArea<ParkedGroup, kParkedGroups> groups;

// NULL when this server remembers no queues.
ParkedGroup* group_of_bucket(int bucket) {
  ParkedGroup* first = groups.here();
  return first ? first + parked_group(bucket) : nullptr;
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

// The entry of the queue, else an entry that is free or expires first. Requires the group's lock.
RememberedQueue* place_for(ParkedGroup* group, uint64 queue) {
  Assert(holds_spin(&group->lock));
  RememberedQueue* place = group->queue;
  for (RememberedQueue& known : group->queue) {
    if (known.queue == queue) return &known;
    if (known.expires < place->expires) place = &known;
  }
  return place;
}

// Requires the group's lock.
void forget_in(ParkedGroup* group, uint64 queue) {
  Assert(holds_spin(&group->lock));
  for (RememberedQueue& known : group->queue)
    if (known.queue == queue) known = {};
}

}  // namespace

Size remembered_queues_size() { return groups.kSize; }

void create_remembered_queues() { groups.create("pg_pulse remembered queues"); }

void reset_remembered_queues(int database) {
  ParkedGroup* group = groups.of_database(database);
  for (int i = 0; group && i < kParkedGroups; i++, group++) {
    lock_spin(&group->lock);
    memset(group->queue, 0, sizeof(group->queue));
    unlock_spin(&group->lock);
  }
}

uint64 remembered_generation(int bucket) {
  ParkedGroup* group = group_of_bucket(bucket);
  return group ? group->read_generation() : 0;
}

bool recall_queue(uint64 hash, RememberedQueue* known) {
  int bucket = bucket_of_hash(hash);
  ParkedGroup* group = group_of_bucket(bucket);
  if (!group) return false;
  Assert(holds_advisory_lock(LockKind::kQueue, hash, ExclusiveLock));
  RememberedQueue found = {};
  lock_spin(&group->lock);
  for (const RememberedQueue& queue : group->queue)
    if (queue.queue == known->queue) found = queue;
  unlock_spin(&group->lock);
  if (found.queue == 0 || has_front_expired(found.expires, wall_now()) ||
      !has_committed(found.writer))
    return false;
  const FirstParked& own = made_parked();
  int at = parked_group(bucket);
  if (own.has(at)) lower_front(&found, own.at[at]);
  *known = found;
  return true;
}

void remember_queue(uint64 hash, uint64 generation, TimestampTz started, RememberedQueue queue) {
  ParkedGroup* group = group_of_bucket(bucket_of_hash(hash));
  if (!group) return;
  Assert(holds_advisory_lock(LockKind::kQueue, hash, ExclusiveLock));
  bool is_kept = queue.count <= kRememberedPlaces;
  bool may_be_undone = is_kept && TransactionIdIsValid(GetTopTransactionIdIfAny());
  queue.writer = may_be_undone ? GetCurrentTransactionId() : InvalidTransactionId;
  if (started) queue.expires = front_expiry(wall_now(), started, kMinExpiryUs);
  lock_spin(&group->lock);
  forget_in(group, queue.queue);
  if (is_kept && group->generation == generation) *place_for(group, queue.queue) = queue;
  unlock_spin(&group->lock);
}

void forget_queue(Datum name) {
  ParkedGroup* group = group_of_bucket(queue_bucket(DatumGetTextPP(name)));
  if (!group) return;
  uint64 queue = queue_identity(name);
  lock_spin(&group->lock);
  forget_in(group, queue);
  unlock_spin(&group->lock);
}

void lower_fronts_to(const FirstParked& parked) {
  ParkedGroup* group = groups.here_if_known();
  for (int at = 0; group && at < kParkedGroups; at++, group++) {
    if (!parked.has(at)) continue;
    lock_spin(&group->lock);
    group->generation++;
    for (RememberedQueue& known : group->queue) lower_front(&known, parked.at[at]);
    unlock_spin(&group->lock);
  }
}

}  // namespace pulse
