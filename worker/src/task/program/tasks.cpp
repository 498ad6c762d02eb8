#include "task/program/tasks.hpp"

#include <algorithm>
#include <utility>

namespace pulse {

ProgramTasks::ProgramTasks(const std::vector<ProcessCommand>& commands,
                           const ProgramSettings& settings, bool shares_slots)
    : shares_slots_(shares_slots) {
  for (std::size_t number = 0; number < commands.size(); ++number) {
    ProgramCallbacks callbacks;
    callbacks.refusal_of = [this, number](const Hello& hello) { return refusal_of(number, hello); };
    callbacks.on_hello = [this] { take_hello(); };
    callbacks.on_failed = [this](const std::string& reason, bool is_transient) {
      on_failed(reason, is_transient);
    };
    callbacks.on_ended = [this] { check_gone(); };
    callbacks.on_more_places = [this] { on_more_extra(); };
    callbacks.may_begin = [this] { return !shares_slots_ || has_free_slot(); };
    sets_.push_back(std::make_unique<ProgramSet>(commands[number], settings, std::move(callbacks)));
  }
}

ProgramTasks::~ProgramTasks() = default;

void ProgramTasks::start() {
  for (const auto& set : sets_) set->start();
}

std::vector<std::string> ProgramTasks::names() const {
  std::vector<std::string> names;
  for (const auto& set : sets_) names.insert(names.end(), set->tasks().begin(), set->tasks().end());
  return names;
}

void ProgramTasks::replace() {
  for (const auto& set : sets_) set->replace();
}

std::string ProgramTasks::refusal() const {
  for (const auto& set : sets_) {
    if (!set->refusal().empty()) return set->refusal();
  }
  return {};
}

void ProgramTasks::when_gone(std::function<void()> then) {
  then_ = std::move(then);
  check_gone();
}

void ProgramTasks::check_gone() {
  const bool is_gone = std::all_of(sets_.begin(), sets_.end(),
                                   [](const auto& set) { return !set->has_processes(); });
  if (is_gone && then_) std::exchange(then_, nullptr)();
}

ProgramSet* ProgramTasks::set_of(const std::string& task) const {
  for (const auto& set : sets_) {
    if (set->tasks().contains(task)) return set.get();
  }
  return nullptr;
}

std::string ProgramTasks::refusal_of(std::size_t number, const Hello& hello) const {
  const std::vector<std::string> elsewhere = served_elsewhere();
  for (const auto& [task, takes] : hello.tasks) {
    const ProgramSet* other = set_of(task);
    const bool is_elsewhere =
        std::find(elsewhere.begin(), elsewhere.end(), task) != elsewhere.end();
    if (!is_elsewhere && (other == nullptr || other == sets_[number].get())) continue;
    return "task '" + task + "' of its hello is served by " +
           (is_elsewhere ? "an executable or --process" : "another --program");
  }
  return {};
}

void ProgramTasks::take_hello() {
  const bool is_all =
      std::all_of(sets_.begin(), sets_.end(), [](const auto& set) { return set->is_ready(); });
  std::vector<std::string> tasks = names();
  std::sort(tasks.begin(), tasks.end());
  const bool is_change = tasks != std::exchange(served_, tasks);
  if (is_all && !std::exchange(is_ready_, true)) return on_ready();
  if (is_ready_ && is_change) on_tasks_changed();
}

// A task with a handler is a function, also where a program has the same name.
bool ProgramTasks::takes(const HeldJob& job) const {
  return !job.job.has_handler && set_of(job.job.input.identifier) != nullptr;
}

ExecutionStart ProgramTasks::start(const HeldJob& job, const Registration& registration,
                                   TimePoint alive_as_of, ExecutionCallbacks callbacks) {
  ProgramSet* set = set_of(job.job.input.identifier);
  return {set->add(job, registration, alive_as_of, std::move(callbacks)), false, {}};
}

void ProgramTasks::slot_freed() {
  if (!shares_slots_) return;
  for (const auto& set : sets_) {
    if (set->waiting() > 0) set->advance_soon();
  }
}

void ProgramTasks::drain() {
  for (const auto& set : sets_) set->drain();
}

std::size_t ProgramTasks::own_slots() const { return shares_slots_ ? 0 : sum(&ProgramSet::places); }

std::size_t ProgramTasks::own_slots_in_use() const {
  return (shares_slots_ ? 0 : in_flight()) + sum(&ProgramSet::waiting);
}

std::vector<TaskShare> ProgramTasks::shares() const {
  std::vector<TaskShare> shares;
  for (const auto& set : sets_) {
    TaskShare rest{{}, set->free_places()};
    for (const std::string& task : set->tasks()) {
      if (set->is_limited(task)) {
        shares.push_back({{task}, set->free_places(task)});
      } else {
        rest.tasks.push_back(task);
      }
    }
    if (!rest.tasks.empty()) shares.push_back(std::move(rest));
  }
  return shares;
}

std::size_t ProgramTasks::sum(std::size_t (ProgramSet::*count)() const) const {
  std::size_t total = 0;
  for (const auto& set : sets_) total += (set.get()->*count)();
  return total;
}

}  // namespace pulse
