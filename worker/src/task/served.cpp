#include "task/served.hpp"

#include "base/log/name_list.hpp"

namespace pulse {

std::vector<std::string> ServedTasks::read() {
  const TasksFolder::Listing listing = folder_.list();
  failure_ = listing.failure;
  if (failure_) {
    log_.warning("folder_refused",
                 {{"reason", failure_->reason}, {"kept", name_list(listing.identifiers)}});
  }
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

std::vector<std::string> ServedTasks::without_programs(const TasksFolder::Listing& listing) const {
  std::vector<std::string> tasks = processes_.names();
  tasks.insert(tasks.end(), listing.identifiers.begin(), listing.identifiers.end());
  return tasks;
}

std::vector<std::string> ServedTasks::tasks_of(const TasksFolder::Listing& listing) const {
  std::vector<std::string> tasks = without_programs(listing);
  const std::vector<std::string> of_programs = programs_.names();
  tasks.insert(tasks.end(), of_programs.begin(), of_programs.end());
  return tasks;
}

}  // namespace pulse
