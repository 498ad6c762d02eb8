#include "task/process/tasks.hpp"

namespace pulse {

ProcessTasks::ProcessTasks(const std::vector<ProcessCommand>& commands,
                           const ProcessSettings& settings) {
  for (const ProcessCommand& command : commands) {
    groups_[command.task] = std::make_unique<ProcessGroup>(
        command, settings,
        ProcessSlots{[this] { return has_free_slot(); }, [this] { return slot_awaited_since(); }},
        [this] { on_more_extra(); });
  }
}

ProcessTasks::~ProcessTasks() = default;

std::vector<std::string> ProcessTasks::names() const {
  std::vector<std::string> names;
  for (const auto& [name, group] : groups_) names.push_back(name);
  return names;
}

// A task with a handler is a function, also where a process has the same name.
bool ProcessTasks::takes(const HeldJob& job) const {
  return !job.job.has_handler && groups_.contains(job.job.input.identifier);
}

ExecutionStart ProcessTasks::start(const HeldJob& job, const Registration& registration,
                                   TimePoint alive_as_of, ExecutionCallbacks callbacks) {
  ProcessGroup& group = *groups_.at(job.job.input.identifier);
  return {group.add(job, registration, alive_as_of, std::move(callbacks)), false, {}};
}

void ProcessTasks::slot_freed() {
  for (const auto& [name, group] : groups_) {
    if (group->has_queue()) group->advance_soon();
  }
}

void ProcessTasks::drain() {
  for (const auto& [name, group] : groups_) group->drain();
}

std::size_t ProcessTasks::sum(std::size_t (ProcessGroup::*count)() const) const {
  std::size_t total = 0;
  for (const auto& [name, group] : groups_) total += (group.get()->*count)();
  return total;
}

}  // namespace pulse
