#include "task_router.hpp"

#include <utility>

#include "base/log/name_list.hpp"

namespace pulse {
TaskRouter::TaskRouter(FunctionTasks& functions, ProcessTasks& processes, ProgramTasks& programs,
                       ServedFolder& folder, StartExecution executables, Log& log)
    : functions_(functions),
      processes_(processes),
      programs_(programs),
      folder_(folder),
      executables_(std::move(executables)),
      log_(log) {}

StartExecution TaskRouter::starter() {
  return [this](const HeldJob& job, const Registration& registration, TimePoint alive_as_of,
                ExecutionCallbacks callbacks) {
    return start(job, registration, alive_as_of, std::move(callbacks));
  };
}

ExecutionStart TaskRouter::start(const HeldJob& job, const Registration& registration,
                                 TimePoint alive_as_of, ExecutionCallbacks callbacks) {
  if (job.job.has_handler) return functions_.start(job, std::move(callbacks));
  if (processes_.takes(job)) {
    return processes_.start(job, registration, alive_as_of, std::move(callbacks));
  }
  if (programs_.takes(job)) {
    return programs_.start(job, registration, alive_as_of, std::move(callbacks));
  }
  return executables_(job, registration, alive_as_of, std::move(callbacks));
}

std::vector<std::string> TaskRouter::read_tasks() {
  const TasksFolder::Listing listing = folder_.list();
  for (const TaskRefusal& refusal : listing.refusals) {
    log_.warning("task_refused", {{"reason", refusal.reason}});
  }
  const auto count = static_cast<std::int64_t>(listing.identifiers.size());
  log_.write(folder_.is_there() && count == 0 ? LogLevel::warning : LogLevel::info, "tasks",
             {{"folder", folder_.path()},
              {"count", count},
              {"names", name_list(listing.identifiers)},
              {"not_executable", name_list(listing.not_executable)},
              {"processes", name_list(processes_.names())},
              {"programs", name_list(programs_.names())}});
  if (!listing.not_executable.empty()) {
    log_.warning("task_skipped", {{"reason", folder_.path() + '/' + listing.not_executable.front() +
                                                 " is not executable: chmod 755"}});
  }
  folder_.forget_missing();
  return tasks_of(listing);
}

std::vector<std::string> TaskRouter::tasks_without_programs(
    const TasksFolder::Listing& listing) const {
  std::vector<std::string> tasks = processes_.names();
  tasks.insert(tasks.end(), listing.identifiers.begin(), listing.identifiers.end());
  return tasks;
}

std::vector<std::string> TaskRouter::tasks_of(const TasksFolder::Listing& listing) const {
  std::vector<std::string> tasks = tasks_without_programs(listing);
  const std::vector<std::string> of_programs = programs_.names();
  tasks.insert(tasks.end(), of_programs.begin(), of_programs.end());
  return tasks;
}

}  // namespace pulse
