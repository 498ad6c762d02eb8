// Which code runs a job of pulse-worker: a function of the database where its task has a handler,
// else the persistent process of its task, else the executable of its name in the tasks folder.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "executable/tasks_folder.hpp"
#include "function/function_tasks.hpp"
#include "jobs/execution.hpp"
#include "log/log.hpp"
#include "process/process_tasks.hpp"

namespace pulse {

class TaskRouter {
 public:
  // `executables` is empty where there is no folder. All of them outlive this.
  TaskRouter(FunctionTasks& functions, ProcessTasks& processes,
             const std::optional<TasksFolder>& folder, StartExecution executables, Log& log);

  // For the worker; this must outlive it.
  StartExecution starter();
  // What the processes and the folder serve at this moment; the log tells what the folder refuses.
  std::vector<std::string> read_tasks() const;

 private:
  ExecutionStart start(const HeldJob& job, const Registration& registration, TimePoint alive_as_of,
                       ExecutionCallbacks callbacks);

  FunctionTasks& functions_;
  ProcessTasks& processes_;
  const std::optional<TasksFolder>& folder_;
  const StartExecution executables_;
  Log& log_;
};

}  // namespace pulse
