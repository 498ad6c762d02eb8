// Wake groups: sessions with the same claim terms, tasks and excluded flags, so that each can
// replace any other. A commit that woke enough waiters of a wake group leaves the group's
// generation alone. It increments the generations of the other wake groups, which ends the next
// wait of their sessions.
#pragma once

#include "server/postgres.hpp"
#include "server/shared_memory.hpp"

namespace pulse {

// The slot of this wake group. The session keeps it until it joins another group or ends. NULL when
// no slot is free. Call it before the claim's snapshot.
WakeGroup* join_wake_group(DatabaseState* database, uint64 wake_group, uint64 tasks);
void leave_wake_group();

}  // namespace pulse
