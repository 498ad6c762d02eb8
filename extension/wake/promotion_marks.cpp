#include "wake/promotion_marks.hpp"

#include "wake/pending_wakes.hpp"
#include "wake/waiters.hpp"

namespace pulse {

void set_promotion_marks(DatabaseState* database, const PromotionMarks& marks) {
  for (int i = 0; marks.any && i < kPromotionMarkWords; i++)
    if (marks.words[i]) pg_atomic_fetch_or_u64(&database->promotion_marks[i], marks.words[i]);
}

void set_freed_levels(DatabaseState* database, uint64 groups) {
  if (groups) pg_atomic_fetch_or_u64(&database->freed_levels, groups);
}

// A queue registers before its promotion reads the count of freed places. So either the promotion
// sees the new count, or this function sees the registration.
void publish_freed_levels(DatabaseState* database, uint64 freed) {
  for (int group = 0; freed && group < kLevelGroups; group++)
    if ((freed >> group) & 1) pg_atomic_fetch_add_u64(&database->level_groups[group].frees, 1);
  set_freed_levels(database, freed & pg_atomic_read_u64(&database->waiting_levels));
}

void publish_due_times(DatabaseState* database, const EarliestRunAt& due, TimestampTz parked_due,
                       TimestampTz sweep_due) {
  bool is_lowered = false;
  for (int bit = 0; bit < kTaskBits; bit++)
    if (due.has(bit)) is_lowered |= lower_due(&database->next_due[bit], due.at[bit]);
  if (is_lowered) signal_waiters(kTimerOwners);
  if (parked_due && lower_due(&database->parked_due, parked_due)) signal_waiters();
  if (sweep_due) request_sweep(database, sweep_due);
}

void UnpromotedQueues::add(uint64 hash) {
  if (count < kMaxQueues) queue[count] = hash;
  if (count < kUnknown) count++;
}

void UnpromotedQueues::remove(uint64 hash) {
  for (int i = count < kUnknown ? count - 1 : -1; i >= 0; i--)
    if (queue[i] == hash) queue[i] = queue[--count];
}

void UnpromotedQueues::narrow(PromotionMarks* marks) const {
  if (count == kUnknown) return;
  memset(marks->words, 0, sizeof(uint64) * kQueueWords);
  for (int i = 0; i < count; i++) marks->add(bucket_of_hash(queue[i]));
}

}  // namespace pulse
