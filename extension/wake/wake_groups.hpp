// WakeGroups: sessions that claim exactly the same, tasks and forbidden flags, so that each can
// stand in for any other. A commit that woke enough waiters of a wake group has nothing to tell to
// the others of it, which are about to wait; of the other wake groups it moves the generation,
// which ends their wait.
#pragma once

#include "server/postgres.hpp"
#include "server/shared_memory.hpp"

namespace pulse {

// The place of this wake group, which this session keeps until it joins another or ends; NULL where
// none is left. Call it before the snapshot of the claim is taken.
WakeGroup* join_wake_group(DatabaseState* database, uint64 wake_group, uint64 tasks);
void leave_wake_group();

}  // namespace pulse
