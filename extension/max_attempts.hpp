// How many attempts a new job has. Each add asks, so a session remembers what pulse.task says.
#pragma once

#include "prelude.hpp"

namespace pulse {

// Of a job of this task, unless it says otherwise.
int task_max_attempts(Datum identifier);

}  // namespace pulse
