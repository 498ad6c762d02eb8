// Starts the executables of the tasks folder, and finds the minder that they run under.
#pragma once

#include <string>

#include "jobs/execution.hpp"
#include "loop/event_loop.hpp"
#include "minder/task_start.hpp"

namespace pulse {

// The path of pulse-minder: PULSE_MINDER, else beside this program, else in ../libexec/pg_pulse,
// else where it was installed. Empty if none of these can be executed.
std::string find_minder();

// Starts tasks from `folder`, which must outlive the result.
StartExecution executable_starter(EventLoop& loop, const TasksFolder& folder,
                                  std::string minder_path, const minder::TaskRules& rules);

}  // namespace pulse
