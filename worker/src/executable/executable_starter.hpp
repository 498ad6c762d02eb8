// Starts the executables of the tasks folder.
#pragma once

#include <string>

#include "executable/tasks_folder.hpp"
#include "jobs/execution.hpp"
#include "loop/event_loop.hpp"
#include "minder/task_start.hpp"

namespace pulse {

// Starts tasks from `folder`, which must outlive the result.
StartExecution executable_starter(EventLoop& loop, const TasksFolder& folder,
                                  std::string minder_path, const minder::TaskRules& rules);

}  // namespace pulse
