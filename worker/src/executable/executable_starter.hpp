// Starts the executables of the tasks folder.
#pragma once

#include <functional>
#include <string>

#include "executable/served_folder.hpp"
#include "executable/task_variables.hpp"
#include "executable/written_lines.hpp"
#include "jobs/execution.hpp"
#include "loop/event_loop.hpp"
#include "minder/task_start.hpp"

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
