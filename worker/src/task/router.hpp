// Task router: the code that runs a job of pulse-worker: a function of the database where the task
// has a handler, else the persistent process of the task, else the program that names the task,
// else the executable of the task's name in the tasks folder.
#pragma once

#include "jobs/execution.hpp"
#include "task/function/tasks.hpp"
#include "task/process/tasks.hpp"
#include "task/program/tasks.hpp"

namespace pulse {

class TaskRouter {
 public:
  // All arguments outlive this.
  TaskRouter(FunctionTasks& functions, ProcessTasks& processes, ProgramTasks& programs,
             StartExecution executables);

  // For the worker; this router must outlive the worker.
  StartExecution starter();

 private:
  ExecutionStart start(const HeldJob& job, const Registration& registration, TimePoint alive_as_of,
                       ExecutionCallbacks callbacks);

  FunctionTasks& functions_;
  ProcessTasks& processes_;
  ProgramTasks& programs_;
  const StartExecution executables_;
};

}  // namespace pulse
