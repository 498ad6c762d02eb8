// Served tasks: the tasks that the folder, the persistent processes and the programs serve.
// Functions are of one database, and not among them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/log/log.hpp"
#include "task/executable/served_folder.hpp"
#include "task/process/tasks.hpp"
#include "task/program/tasks.hpp"

namespace pulse {

class ServedTasks {
 public:
  // All arguments outlive this.
  ServedTasks(ProcessTasks& processes, ProgramTasks& programs, ServedFolder& folder, Log& log)
      : processes_(processes), programs_(programs), folder_(folder), log_(log) {}

  // The tasks at this moment; with the executables from before, where the folder cannot be listed.
  // The log tells the tasks, and the refusals of the folder.
  std::vector<std::string> read();
  // Why the last read() could not list the folder.
  const std::optional<TaskRefusal>& failure() const { return failure_; }
  // The same without a log line, while a task that was served is missing.
  std::vector<std::string> read_again() { return tasks_of(folder_.list_present()); }
  // The tasks of executables and persistent processes.
  std::vector<std::string> without_programs() const { return without_programs(folder_.list()); }

 private:
  std::vector<std::string> without_programs(const TasksFolder::Listing& listing) const;
  std::vector<std::string> tasks_of(const TasksFolder::Listing& listing) const;

  ProcessTasks& processes_;
  ProgramTasks& programs_;
  ServedFolder& folder_;
  Log& log_;
  std::optional<TaskRefusal> failure_;
};

}  // namespace pulse
