// How often what pulse.task says may have changed for this session. A trigger of the table tells
// every session, after the change can be seen. A statement of its own sees what it has written
// before the trigger tells, so whatever is rolled back counts too.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// Whether there is such a trigger: the SQL of 0.1.0 has none.
bool task_changes_are_told();

// Listens to what others have said so far.
uint64 task_changes();

// For callbacks: never raises.
void count_rollback_as_task_change();

}  // namespace pulse
