// Task router: the code that runs a job of pulse-worker: a function of the database where the task
// has a handler, else the persistent process of the task, else the program that names the task,
// else the executable of the task's name in the tasks folder.
#pragma once

#include <string>
#include <vector>

#include "base/log/log.hpp"
#include "jobs/execution.hpp"
#include "task/executable/served_folder.hpp"
#include "task/function/tasks.hpp"
#include "task/process/tasks.hpp"
#include "task/program/tasks.hpp"

namespace pulse {

class TaskRouter {
 public:
  // All arguments outlive this.
  TaskRouter(FunctionTasks& functions, ProcessTasks& processes, ProgramTasks& programs,
             ServedFolder& folder, StartExecution executables, Log& log);

  // For the worker; this router must outlive the worker.
  StartExecution starter();
  // The tasks that the processes, the programs and the folder serve at this moment. The log tells
  // the tasks, and the refusals of the folder.
  std::vector<std::string> read_tasks();
  // The same without a log line, while a task that was served is missing.
  std::vector<std::string> read_tasks_again() { return tasks_of(folder_.list()); }
  // The tasks of executables and persistent processes.
  std::vector<std::string> tasks_without_programs() const {
    return tasks_without_programs(folder_.list());
  }

 private:
  ExecutionStart start(const HeldJob& job, const Registration& registration, TimePoint alive_as_of,
                       ExecutionCallbacks callbacks);

  std::vector<std::string> tasks_without_programs(const TasksFolder::Listing& listing) const;
  std::vector<std::string> tasks_of(const TasksFolder::Listing& listing) const;

  FunctionTasks& functions_;
  ProcessTasks& processes_;
  ProgramTasks& programs_;
  ServedFolder& folder_;
  const StartExecution executables_;
  Log& log_;
};

}  // namespace pulse
