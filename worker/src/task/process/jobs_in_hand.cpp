#include "task/process/jobs_in_hand.hpp"

#include <algorithm>
#include <utility>

namespace pulse {

ProcessExecution* JobsInHand::find(std::int64_t job_id) const {
  const auto entry = in_flight_.find(job_id);
  return entry == in_flight_.end() ? nullptr : entry->second;
}

ProcessExecution* JobsInHand::find(std::int64_t job_id, std::string_view database) const {
  const auto [first, last] = in_flight_.equal_range(job_id);
  const auto entry = std::find_if(
      first, last, [&](const auto& each) { return each.second->database() == database; });
  return entry == last ? nullptr : entry->second;
}

JobsInHand::InFlight::const_iterator JobsInHand::place_of(const ProcessExecution& execution) const {
  const auto [first, last] = in_flight_.equal_range(execution.job_id());
  const auto entry =
      std::find_if(first, last, [&](const auto& each) { return each.second == &execution; });
  return entry == last ? in_flight_.end() : entry;
}

void JobsInHand::add(ProcessExecution& execution) {
  if (in_flight_.empty()) busy_since_ = timers_.now();
  in_flight_.emplace(execution.job_id(), &execution);
}

void JobsInHand::answer(ProcessExecution& execution, ExecutionEnd end) {
  in_flight_.erase(place_of(execution));
  answered_.push_back(&execution);
  has_answered_ = true;
  execution.end_with(std::move(end));
}

void JobsInHand::deliver() {
  if (answered_.empty()) return;
  const TimePoint now = timers_.now();
  const auto each = (now - std::exchange(busy_since_, now)) / answered_.size();
  for (ProcessExecution* execution : std::exchange(answered_, {})) execution->deliver(each);
}

void JobsInHand::end_all(const ExecutionEnd& end) {
  while (!in_flight_.empty()) {
    ProcessExecution& execution = *in_flight_.begin()->second;
    in_flight_.erase(in_flight_.begin());
    execution.end_with(end);
    execution.deliver(std::nullopt);
  }
}

bool JobsInHand::forget(ProcessExecution& execution) {
  std::erase(answered_, &execution);
  const auto entry = place_of(execution);
  if (entry == in_flight_.end()) return false;
  in_flight_.erase(entry);
  return true;
}

TimePoint JobsInHand::first_deadline(TimePoint latest) const {
  for (const auto& [id, execution] : in_flight_) latest = std::min(latest, execution->deadline());
  return latest;
}

}  // namespace pulse
