#include "wake/wake_groups.hpp"

namespace pulse {
namespace {

constexpr uint32 kBeingMade = 1u << 31;

WakeGroup* held = nullptr;

bool is_of(WakeGroup* place, uint64 wake_group, uint64 tasks) {
  return pg_atomic_read_u64(&place->wake_group) == wake_group &&
         pg_atomic_read_u64(&place->tasks) == tasks;
}

// Its last user may leave and another wake group come in before we are counted: then we look on.
bool join(WakeGroup* place, uint64 wake_group, uint64 tasks) {
  uint32 users = pg_atomic_read_u32(&place->users);
  while (users > 0 && users < kBeingMade && is_of(place, wake_group, tasks)) {
    if (!pg_atomic_compare_exchange_u32(&place->users, &users, users + 1)) continue;
    if (is_of(place, wake_group, tasks)) return true;
    pg_atomic_fetch_sub_u32(&place->users, 1);
    return false;
  }
  return false;
}

// Two sessions may make two places of one wake group: both are told.
bool make(WakeGroup* place, uint64 wake_group, uint64 tasks) {
  uint32 users = 0;
  if (!pg_atomic_compare_exchange_u32(&place->users, &users, kBeingMade)) return false;
  pg_atomic_write_u64(&place->wake_group, wake_group);
  pg_atomic_write_u64(&place->tasks, tasks);
  pg_atomic_fetch_sub_u32(&place->users, kBeingMade - 1);
  return true;
}

}  // namespace

WakeGroup* join_wake_group(DatabaseState* database, uint64 wake_group, uint64 tasks) {
  if (held && is_of(held, wake_group, tasks)) return held;
  leave_wake_group();
  for (WakeGroup& place : database->wake_groups)
    if (!held && join(&place, wake_group, tasks)) held = &place;
  for (WakeGroup& place : database->wake_groups)
    if (!held && make(&place, wake_group, tasks)) held = &place;
  // A commit that still reads what was here before is visible to the claim that follows.
  pg_memory_barrier();
  return held;
}

void leave_wake_group() {
  if (held) pg_atomic_fetch_sub_u32(&held->users, 1);
  held = nullptr;
}

}  // namespace pulse
