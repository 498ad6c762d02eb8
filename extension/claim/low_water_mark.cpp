#include "claim/low_water_mark.hpp"

#include "access/catalog.hpp"
#include "server/clocks.hpp"
#include "server/settings.hpp"
#include "server/values.hpp"
#include "shared/database_area.hpp"

namespace pulse {
namespace {

constexpr int64 kMinPauseUs = 4000;
constexpr OrderKey kFront = {PG_INT64_MIN, PG_INT64_MIN};

DatabaseArea<LowWaterBucket, kTaskBits> buckets;

// The low-water mark of this task and priority, if there is one. Requires the lock of the bucket.
LowWaterMark* mark_in_bucket(const LowWaterView& view, int16 priority) {
  Assert(holds_spin(&view.bucket->lock));
  LowWaterMark* end = view.bucket->mark + view.bucket->used;
  for (LowWaterMark* mark = view.bucket->mark; mark < end; mark++)
    if (mark->task == view.task && mark->priority == priority) return mark;
  return nullptr;
}

// A new low-water mark for this task and priority, in place of the one that expires first if all
// are used. Requires the lock of the bucket.
LowWaterMark* new_mark(const LowWaterView& view, int16 priority) {
  LowWaterBucket* bucket = view.bucket;
  Assert(holds_spin(&bucket->lock));
  LowWaterMark* entry = bucket->mark;
  if (bucket->used < kLowWaterMarksPerBit)
    entry += bucket->used++;
  else
    for (LowWaterMark& mark : bucket->mark)
      if (mark.expires < entry->expires) entry = &mark;
  *entry = {view.task, kFront, kFront, 0, priority, false};
  return entry;
}

FoundLowWater found_from(const LowWaterMark* mark) {
  if (!mark) return {false, kFront, kFront, 0};
  return {false, mark->key, mark->checked, mark->expires};
}

// Notes a lowering: a claim whose snapshot is older raises the low-water mark no further than this
// key. Requires the lock of the bucket.
void remember_lowering(LowWaterBucket* bucket, TimestampTz run_at) {
  Assert(holds_spin(&bucket->lock));
  bucket->recent[bucket->generation % kRecentKeys] = run_at;
  bucket->generation++;
}

// Limits the key to the lowerings since known_generation. False when more lowerings happened than
// the bucket keeps. Requires the lock of the bucket.
bool limit_to_recent(const LowWaterBucket* bucket, uint64 known_generation, OrderKey* key) {
  Assert(holds_spin(&bucket->lock));
  if (bucket->generation - known_generation > kRecentKeys) return false;
  for (uint64 i = known_generation; i != bucket->generation; i++) {
    OrderKey lowered = {bucket->recent[i % kRecentKeys], PG_INT64_MIN};
    if (precedes(lowered, *key)) *key = lowered;
  }
  return true;
}

int compare_priorities(const void* a, const void* b) {
  return *static_cast<const int16*>(a) - *static_cast<const int16*>(b);
}

}  // namespace

bool precedes(OrderKey a, OrderKey b) {
  return a.run_at != b.run_at ? a.run_at < b.run_at : a.id < b.id;
}

Size low_water_marks_size() { return buckets.kSize; }

void create_low_water_marks() { buckets.create("pg_pulse low-water marks"); }

void reset_low_water_marks(int database) {
  LowWaterBucket* bucket = buckets.of_database(database);
  for (int bit = 0; bucket && bit < kTaskBits; bit++, bucket++) {
    lock_spin(&bucket->lock);
    bucket->used = 0;
    unlock_spin(&bucket->lock);
  }
}

LowWaterBucket* low_water_buckets() { return buckets.here(); }

uint64 hash_of_task(const text* identifier) {
  // Includes the table's oid, so that a new installation in this database ignores low-water marks
  // of the old installation.
  return fnv1a(identifier) ^ (static_cast<uint64>(catalog()->job) << 32);
}

int low_water_priorities(const LowWaterView& view, int16* priorities) {
  if (!view.bucket) return 0;
  int count = 0;
  lock_spin(&view.bucket->lock);
  for (int i = 0; i < view.bucket->used; i++)
    if (view.bucket->mark[i].task == view.task) priorities[count++] = view.bucket->mark[i].priority;
  unlock_spin(&view.bucket->lock);
  if (count > 1) qsort(priorities, count, sizeof(int16), compare_priorities);
  return count;
}

FoundLowWater find_low_water_mark(const LowWaterView& view, int16 priority, bool checks) {
  FoundLowWater found = found_from(nullptr);
  if (!view.bucket) return found;
  TimestampTz now = wall_now();
  lock_spin(&view.bucket->lock);
  LowWaterMark* mark = mark_in_bucket(view, priority);
  if (mark) found = found_from(mark);
  found.is_to_check = mark && has_front_expired(mark->expires, now);
  if (found.is_to_check && checks) {
    // Unless this claim reports back, or finishes the check, another claim starts the check anew.
    mark->is_checked = true;
    mark->checked = kFront;
    mark->expires = now + kMinExpiryUs;
  }
  unlock_spin(&view.bucket->lock);
  if (view.own_run_at <= found.key.run_at) found.key = {view.own_run_at, PG_INT64_MIN};
  if (!precedes(found.checked, found.key)) found.checked = kFront;
  return found;
}

FoundLowWater current_low_water_mark(const LowWaterView& view, int16 priority) {
  lock_spin(&view.bucket->lock);
  FoundLowWater found = found_from(mark_in_bucket(view, priority));
  unlock_spin(&view.bucket->lock);
  return found;
}

Reservation advance_low_water_mark(const LowWaterView& view, int16 priority, OrderKey to) {
  TimestampTz now = wall_now();
  lock_spin(&view.bucket->lock);
  LowWaterMark* mark = mark_in_bucket(view, priority);
  OrderKey from = mark ? mark->key : kFront;
  OrderKey limit = to;
  bool is_done = limit_to_recent(view.bucket, view.generation, &limit) && !precedes(limit, to);
  if (is_done && !mark) {
    mark = new_mark(view, priority);
    mark->expires = now + kMinExpiryUs;
  }
  if (is_done && precedes(from, to)) mark->key = to;
  unlock_spin(&view.bucket->lock);
  return {is_done, from};
}

void return_to_low_water_mark(const LowWaterView& view, int16 priority, OrderKey key) {
  lock_spin(&view.bucket->lock);
  remember_lowering(view.bucket, key.run_at);
  LowWaterMark* mark = mark_in_bucket(view, priority);
  if (mark && precedes(key, mark->key)) mark->key = key;
  unlock_spin(&view.bucket->lock);
}

TimestampTz record_checked(const LowWaterView& view, int16 priority, OrderKey checked,
                           TimestampTz check_started) {
  TimestampTz now = wall_now();
  TimestampTz expires = front_expiry(now, check_started, kMinPauseUs, view.sharers);
  lock_spin(&view.bucket->lock);
  if (LowWaterMark* mark = mark_in_bucket(view, priority)) {
    mark->is_checked = false;
    mark->checked = checked;
    mark->expires = expires;
  }
  unlock_spin(&view.bucket->lock);
  return expires;
}

void forget_low_water_mark(const LowWaterView& view, int16 priority) {
  lock_spin(&view.bucket->lock);
  if (LowWaterMark* mark = mark_in_bucket(view, priority))
    *mark = view.bucket->mark[--view.bucket->used];
  unlock_spin(&view.bucket->lock);
}

void raise_low_water_mark(const LowWaterView& view, int16 priority, OrderKey key,
                          TimestampTz expires, TimestampTz walk_started) {
  if (!view.bucket) return;
  TimestampTz now = wall_now();
  bool is_new = expires == 0;
  if (is_new)
    expires = Max(front_expiry(now, walk_started, kMinPauseUs, view.sharers), now + kMinExpiryUs);
  lock_spin(&view.bucket->lock);
  if (limit_to_recent(view.bucket, view.generation, &key)) {
    LowWaterMark* mark = mark_in_bucket(view, priority);
    if (!mark) mark = new_mark(view, priority);
    // Another claim may have raised the low-water mark further meanwhile.
    bool is_further = precedes(mark->key, key);
    if (mark->expires == 0 || (is_new && (is_further || mark->expires <= now || mark->is_checked)))
      *mark = {view.task, key, kFront, expires, priority, false};
    else if (is_further)
      mark->key = key;
  }
  unlock_spin(&view.bucket->lock);
}

namespace {

void lower_low_water_marks_of(LowWaterBucket* bucket, TimestampTz run_at) {
  lock_spin(&bucket->lock);
  remember_lowering(bucket, run_at);
  for (int i = 0; i < bucket->used; i++)
    if (run_at <= bucket->mark[i].key.run_at) bucket->mark[i].key = {run_at, PG_INT64_MIN};
  unlock_spin(&bucket->lock);
}

}  // namespace

void lower_low_water_marks_to(const EarliestRunAt& earliest) {
  LowWaterBucket* bucket = buckets.here_if_known();
  for (int bit = 0; bucket && bit < kTaskBits; bit++)
    if (earliest.has(bit)) lower_low_water_marks_of(&bucket[bit], earliest.at[bit]);
}

}  // namespace pulse
