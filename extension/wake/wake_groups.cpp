#include "wake/wake_groups.hpp"

namespace pulse {
namespace {

constexpr uint32 kBeingMade = 1u << 31;

KindPlace* held = nullptr;

bool is_of(KindPlace* place, uint64 kind, uint64 tasks) {
  return pg_atomic_read_u64(&place->kind) == kind && pg_atomic_read_u64(&place->tasks) == tasks;
}

// Its last user may leave and another kind come in before we are counted: then we look on.
bool join(KindPlace* place, uint64 kind, uint64 tasks) {
  uint32 users = pg_atomic_read_u32(&place->users);
  while (users > 0 && users < kBeingMade && is_of(place, kind, tasks)) {
    if (!pg_atomic_compare_exchange_u32(&place->users, &users, users + 1)) continue;
    if (is_of(place, kind, tasks)) return true;
    pg_atomic_fetch_sub_u32(&place->users, 1);
    return false;
  }
  return false;
}

// Two sessions may make two places of one kind: both are told.
bool make(KindPlace* place, uint64 kind, uint64 tasks) {
  uint32 users = 0;
  if (!pg_atomic_compare_exchange_u32(&place->users, &users, kBeingMade)) return false;
  pg_atomic_write_u64(&place->kind, kind);
  pg_atomic_write_u64(&place->tasks, tasks);
  pg_atomic_fetch_sub_u32(&place->users, kBeingMade - 1);
  return true;
}

}  // namespace

KindPlace* join_kind(DatabaseState* database, uint64 kind, uint64 tasks) {
  if (held && is_of(held, kind, tasks)) return held;
  leave_kind();
  for (KindPlace& place : database->kinds)
    if (!held && join(&place, kind, tasks)) held = &place;
  for (KindPlace& place : database->kinds)
    if (!held && make(&place, kind, tasks)) held = &place;
  // A commit that still reads what was here before is visible to the claim that follows.
  pg_memory_barrier();
  return held;
}

void leave_kind() {
  if (held) pg_atomic_fetch_sub_u32(&held->users, 1);
  held = nullptr;
}

}  // namespace pulse
