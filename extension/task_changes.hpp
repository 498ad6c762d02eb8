// How often this session has heard that pulse.task was changed. A trigger of the table tells every
// session, after the change can be seen; the session's own changes count from its next statement,
// and once more when they are undone.
#pragma once

#include "prelude.hpp"

namespace pulse {

// Whether there is such a trigger: the SQL of 0.1.0 has none.
bool task_changes_are_told();

// Listens to what others have said so far.
uint64 task_changes();

}  // namespace pulse
