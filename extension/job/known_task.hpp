// What a session remembers of a task, as long as nobody has changed any: each add and each claim
// asks.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// How many attempts a new job of this task has, unless it says otherwise.
int task_max_attempts(Datum identifier);

// Whether pulse.task surely has no row of it, so that all its settings are the defaults. False
// where nothing may be remembered.
bool task_is_unset(Datum identifier);

}  // namespace pulse
