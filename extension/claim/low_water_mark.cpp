#include "claim/low_water_mark.hpp"

#include "access/catalog.hpp"
#include "server/clocks.hpp"
#include "server/hash.hpp"
#include "server/settings.hpp"
#include "server/shared_memory.hpp"

namespace pulse {
namespace {

// Looks below the head take at most a fiftieth of the time between them.
constexpr int64 kLooksApart = 50;
constexpr HeadKey kFront = {PG_INT64_MIN, PG_INT64_MIN};
constexpr int64 kShortestUs = 1000000;
constexpr int64 kLongestUs = 60000000;

HeadBucket* buckets = nullptr;

// The head of this lane, if there is one.
Head* existing(const HeadView& view, int16 priority) {
  for (Head& head : view.bucket->head)
    if (head.task == view.task && head.priority == priority) return &head;
  return nullptr;
}

// The head of this lane, a free place or the one that expires first.
Head* place_of(HeadBucket* bucket, uint64 task, int16 priority) {
  Head* place = &bucket->head[0];
  for (Head& head : bucket->head) {
    if (head.task == task && head.priority == priority) return &head;
    if (head.task == 0 || head.expires < place->expires) place = &head;
  }
  return place;
}

HeadFound as_found(const Head& head) { return {true, false, head.key, kFront, head.expires}; }

// Whoever raises a head after a walk that began before this goes no further.
void remember_lowering(HeadBucket* bucket, TimestampTz run_at) {
  bucket->recent[bucket->generation % kRecentKeys] = run_at;
  bucket->generation++;
}

bool is_further(const Head* head, const HeadFound& found) {
  return head && (!found.is_known || precedes(found.key, head->key));
}

// False when more was lowered than is remembered.
bool limit_to_recent(const HeadBucket* bucket, uint64 seen, HeadKey* key) {
  if (bucket->generation - seen > kRecentKeys) return false;
  for (uint64 i = seen; i != bucket->generation; i++) {
    HeadKey lowered = {bucket->recent[i % kRecentKeys], PG_INT64_MIN};
    if (precedes(lowered, *key)) *key = lowered;
  }
  return true;
}

}  // namespace

bool precedes(HeadKey a, HeadKey b) {
  return a.run_at != b.run_at ? a.run_at < b.run_at : a.id < b.id;
}

Size heads_size(int databases) {
  return mul_size(mul_size(databases, kTaskBits), sizeof(HeadBucket));
}

void create_heads(int databases) {
  buckets = static_cast<HeadBucket*>(
      shared_area("pg_pulse heads", heads_size(databases), [](void* area, Size size) {
        memset(area, 0, size);
        auto* all = static_cast<HeadBucket*>(area);
        for (Size i = 0; i < size / sizeof(HeadBucket); i++) SpinLockInit(&all[i].lock);
      }));
}

void reset_heads(int database) {
  for (int bit = 0; buckets && bit < kTaskBits; bit++) {
    HeadBucket* bucket = head_bucket(database, bit);
    SpinLockAcquire(&bucket->lock);
    memset(bucket->head, 0, sizeof(bucket->head));
    SpinLockRelease(&bucket->lock);
  }
}

HeadBucket* head_bucket(int database, int bit) {
  return buckets ? &buckets[database * kTaskBits + bit] : nullptr;
}

uint64 head_generation(HeadBucket* bucket) {
  SpinLockAcquire(&bucket->lock);
  uint64 generation = bucket->generation;
  SpinLockRelease(&bucket->lock);
  return generation;
}

uint64 head_task(const char* identifier, int length) {
  // The table's oid, so that a new installation in this database finds nothing of the old one.
  uint64 task = fnv1a(identifier, length) ^ (static_cast<uint64>(catalog()->job) << 32);
  return task ? task : 1;
}

int known_priorities(const HeadView& view, int16* priorities) {
  if (!view.bucket) return 0;
  int count = 0;
  SpinLockAcquire(&view.bucket->lock);
  for (const Head& head : view.bucket->head) {
    if (head.task != view.task) continue;
    int place = count++;
    for (; place > 0 && priorities[place - 1] > head.priority; place--)
      priorities[place] = priorities[place - 1];
    priorities[place] = head.priority;
  }
  SpinLockRelease(&view.bucket->lock);
  return count;
}

HeadFound find_head(const HeadView& view, int16 priority) {
  HeadFound found = {};
  found.checked = kFront;
  if (!view.bucket) return found;
  TimestampTz now = wall_now();
  SpinLockAcquire(&view.bucket->lock);
  if (Head* head = existing(view, priority)) {
    found = {true, head->expires <= now || head->expires - now > kLongestUs, head->key,
             head->checked, head->expires};
    // Should this claim not come back, or come to the end, another begins anew.
    if (found.is_to_check) {
      head->is_checked = true;
      head->checked = kFront;
      head->expires = now + kShortestUs;
    }
  }
  SpinLockRelease(&view.bucket->lock);
  if (view.own <= found.key.run_at) found.key = {view.own, PG_INT64_MIN};
  if (!precedes(found.checked, found.key)) found.checked = kFront;
  return found;
}

bool head_has_moved(const HeadView& view, int16 priority, HeadFound* found) {
  SpinLockAcquire(&view.bucket->lock);
  Head* head = existing(view, priority);
  bool has_moved = is_further(head, *found);
  if (has_moved) *found = as_found(*head);
  SpinLockRelease(&view.bucket->lock);
  return has_moved;
}

Advance advance_head(const HeadView& view, int16 priority, HeadKey to, HeadFound* found) {
  TimestampTz now = wall_now();
  Advance advance = Advance::kNo;
  SpinLockAcquire(&view.bucket->lock);
  Head* head = existing(view, priority);
  bool is_same = found->is_known == (head != nullptr) && !(head && precedes(head->key, found->key));
  HeadKey key = to;
  if (is_further(head, *found)) {
    advance = Advance::kBehind;
    *found = as_found(*head);
  } else if (is_same && limit_to_recent(view.bucket, view.generation, &key) && !precedes(key, to)) {
    advance = Advance::kDone;
    if (!head) {
      head = place_of(view.bucket, view.task, priority);
      *head = {view.task, priority, to, now + kShortestUs, false, kFront};
    }
    head->key = to;
    *found = as_found(*head);
  }
  SpinLockRelease(&view.bucket->lock);
  return advance;
}

void give_back(const HeadView& view, int16 priority, HeadKey key) {
  SpinLockAcquire(&view.bucket->lock);
  remember_lowering(view.bucket, key.run_at);
  Head* head = existing(view, priority);
  if (head && precedes(key, head->key)) head->key = key;
  SpinLockRelease(&view.bucket->lock);
}

TimestampTz note_checked(const HeadView& view, int16 priority, HeadKey checked,
                         TimestampTz look_started) {
  TimestampTz now = wall_now();
  TimestampTz expires = now + Min(Max(now - look_started, 1) * kLooksApart, kLongestUs);
  SpinLockAcquire(&view.bucket->lock);
  if (Head* head = existing(view, priority)) {
    head->is_checked = false;
    head->checked = checked;
    head->expires = expires;
  }
  SpinLockRelease(&view.bucket->lock);
  return expires;
}

void forget_head(const HeadView& view, int16 priority) {
  SpinLockAcquire(&view.bucket->lock);
  if (Head* head = existing(view, priority)) head->task = 0;
  SpinLockRelease(&view.bucket->lock);
}

void raise_head(const HeadView& view, int16 priority, HeadKey key, TimestampTz expires,
                TimestampTz walk_started) {
  if (!view.bucket) return;
  TimestampTz now = wall_now();
  bool is_new = expires == 0;
  if (is_new) expires = now + Min(Max((now - walk_started) * kLooksApart, kShortestUs), kLongestUs);
  SpinLockAcquire(&view.bucket->lock);
  if (limit_to_recent(view.bucket, view.generation, &key)) {
    Head* head = place_of(view.bucket, view.task, priority);
    bool is_same = head->task == view.task && head->priority == priority;
    // Another claim may have come further meanwhile.
    if (!is_same || head->expires <= now || precedes(head->key, key) ||
        (is_new && head->is_checked))
      *head = {view.task,
               priority,
               key,
               expires,
               is_same && head->is_checked && !is_new,
               is_same && !is_new ? head->checked : kFront};
  }
  SpinLockRelease(&view.bucket->lock);
}

namespace {

void lower_heads(HeadBucket* bucket, TimestampTz run_at) {
  SpinLockAcquire(&bucket->lock);
  remember_lowering(bucket, run_at);
  for (Head& head : bucket->head)
    if (run_at <= head.key.run_at) head.key = {run_at, PG_INT64_MIN};
  SpinLockRelease(&bucket->lock);
}

}  // namespace

void lower_heads_to(const EarliestRunAt& earliest) {
  DatabaseState* database = this_database_if_known();
  if (!buckets || !database) return;
  for (int bit = 0; bit < kTaskBits; bit++)
    if ((earliest.bits >> bit) & 1)
      lower_heads(head_bucket(place_of_database(database), bit), earliest.at[bit]);
}

}  // namespace pulse
