#include "service/late_answers.hpp"

#include "base/loop/signals_blocked.hpp"

namespace pulse::console {

LateAnswers::LateAnswers(std::chrono::milliseconds delay) : delay_(delay) {
  const SignalsBlocked blocked;
  thread_ = std::thread([this] { answer_due(); });
}

bool LateAnswers::add(Answer answer) {
  const std::lock_guard lock(mutex_);
  if (is_ending_ || waiting_.size() >= kMaxLate) return false;
  waiting_.push_back({std::move(answer), std::chrono::steady_clock::now() + delay_});
  if (waiting_.size() == 1) changed_.notify_all();
  return true;
}

void LateAnswers::stop() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void LateAnswers::answer_due() {
  std::unique_lock lock(mutex_);
  while (!waiting_.empty() || !is_ending_) {
    if (waiting_.empty()) {
      changed_.wait(lock);
      continue;
    }
    const auto due = waiting_.front().due;
    if (!is_ending_ && std::chrono::steady_clock::now() < due) {
      changed_.wait_until(lock, due);
      continue;
    }
    const Answer answer = std::move(waiting_.front().answer);
    waiting_.pop_front();
    lock.unlock();
    answer();
    lock.lock();
  }
}

}  // namespace pulse::console
