#include "task_router.hpp"

#include <algorithm>
#include <utility>

namespace pulse {
namespace {

constexpr std::size_t kMaxNamed = 20;

// The first names, and how many more there are; nothing for no name.
std::optional<std::string> list_text(const std::vector<std::string>& names) {
  if (names.empty()) return std::nullopt;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kMaxNamed); ++i)
    text += (i == 0 ? "" : " ") + names[i];
  if (names.size() > kMaxNamed)
    text += " and " + std::to_string(names.size() - kMaxNamed) + " more";
  return text;
}

}  // namespace

TaskRouter::TaskRouter(FunctionTasks& functions, ProcessTasks& processes,
                       const std::optional<TasksFolder>& folder, StartExecution executables,
                       Log& log)
    : functions_(functions),
      processes_(processes),
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
  if (!executables_) return {nullptr, false, "its task has no handler any more"};
  return executables_(job, registration, alive_as_of, std::move(callbacks));
}

std::vector<std::string> TaskRouter::read_tasks() const {
  std::vector<std::string> tasks = processes_.names();
  if (!folder_) return tasks;
  TasksFolder::Listing listing = folder_->list();
  for (const TaskRefusal& refusal : listing.refusals) {
    log_.warning("task_refused", {{"reason", refusal.reason}});
  }
  const auto count = static_cast<std::int64_t>(listing.identifiers.size());
  log_.write(count == 0 ? LogLevel::warning : LogLevel::info, "tasks",
             {{"folder", folder_->path()},
              {"count", count},
              {"names", list_text(listing.identifiers)},
              {"not_executable", list_text(listing.not_executable)}});
  if (!listing.not_executable.empty()) {
    log_.info("task_skipped", {{"reason", folder_->path() + '/' + listing.not_executable.front() +
                                              " is not executable: chmod 755"}});
  }
  tasks.insert(tasks.end(), listing.identifiers.begin(), listing.identifiers.end());
  return tasks;
}

}  // namespace pulse
