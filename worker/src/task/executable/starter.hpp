// Starts the executables of the tasks folder.
#pragma once

#include <functional>
#include <string>

#include "base/loop/event_loop.hpp"
#include "jobs/execution.hpp"
#include "minder/task_start.hpp"
#include "task/executable/served_folder.hpp"
#include "task/executable/variables.hpp"
#include "task/executable/written_lines.hpp"

namespace pulse {

// Everything referred to here must outlive the started executions.
struct ExecutableSettings {
  EventLoop& loop;
  ServedFolder& folder;
  std::string minder_path;
  minder::TaskRules rules;
  const TaskVariables& variables;
  WrittenLog& written;
  // A task that was served is not there.
  std::function<void()> on_missing;
};

StartExecution executable_starter(ExecutableSettings settings);

}  // namespace pulse
