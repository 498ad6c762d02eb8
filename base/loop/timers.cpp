#include "base/loop/timers.hpp"

#include <vector>

namespace pulse {

std::optional<TimePoint> Timers::next_due() const {
  if (running_.empty()) return std::nullopt;
  return running_.begin()->first.first;
}

void Timers::run_due() {
  const TimePoint now = clock_.now();
  std::vector<Key> due;
  for (const auto& [key, callback] : running_) {
    if (key.first > now) break;
    due.push_back(key);
  }
  for (const Key& key : due) {
    const auto entry = running_.find(key);
    if (entry == running_.end()) continue;  // an earlier callback has stopped this timer
    // A copy, because the callback may destroy the timer.
    const std::function<void()> callback = entry->second->callback_;
    entry->second->key_.reset();
    running_.erase(entry);
    callback();
  }
}

void Timer::start_at(TimePoint due) {
  stop();
  key_ = Timers::Key(due, ++timers_.last_number_);
  timers_.running_.emplace(*key_, this);
}

void Timer::stop() {
  if (key_) timers_.running_.erase(*key_);
  key_.reset();
}

}  // namespace pulse
