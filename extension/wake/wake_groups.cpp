#include "wake/wake_groups.hpp"

namespace pulse {
namespace {

constexpr uint32 kBeingCreated = 1u << 31;

WakeGroup* joined = nullptr;

bool has_terms(WakeGroup* slot, uint64 wake_group, uint64 tasks) {
  return pg_atomic_read_u64(&slot->wake_group) == wake_group &&
         pg_atomic_read_u64(&slot->tasks) == tasks;
}

// The last user may leave, and another wake group take the slot, before this session is counted.
// Then the search continues.
bool try_join(WakeGroup* slot, uint64 wake_group, uint64 tasks) {
  uint32 users = pg_atomic_read_u32(&slot->users);
  while (users > 0 && users < kBeingCreated && has_terms(slot, wake_group, tasks)) {
    if (!pg_atomic_compare_exchange_u32(&slot->users, &users, users + 1)) continue;
    if (has_terms(slot, wake_group, tasks)) return true;
    pg_atomic_fetch_sub_u32(&slot->users, 1);
    return false;
  }
  return false;
}

// Two sessions may create two slots of one wake group; commits increment both.
bool try_create(WakeGroup* slot, uint64 wake_group, uint64 tasks) {
  uint32 users = 0;
  if (!pg_atomic_compare_exchange_u32(&slot->users, &users, kBeingCreated)) return false;
  pg_atomic_write_u64(&slot->wake_group, wake_group);
  pg_atomic_write_u64(&slot->tasks, tasks);
  pg_atomic_fetch_sub_u32(&slot->users, kBeingCreated - 1);
  return true;
}

}  // namespace

WakeGroup* join_wake_group(DatabaseState* database, uint64 wake_group, uint64 tasks) {
  if (joined && has_terms(joined, wake_group, tasks)) return joined;
  leave_wake_group();
  for (WakeGroup& slot : database->wake_groups)
    if (!joined && try_join(&slot, wake_group, tasks)) joined = &slot;
  for (WakeGroup& slot : database->wake_groups)
    if (!joined && try_create(&slot, wake_group, tasks)) joined = &slot;
  // A commit that still reads the slot's previous content is visible to the claim that follows.
  pg_memory_barrier();
  return joined;
}

void leave_wake_group() {
  if (joined) pg_atomic_fetch_sub_u32(&joined->users, 1);
  joined = nullptr;
}

}  // namespace pulse
