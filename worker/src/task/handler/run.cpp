#include "task/handler/run.hpp"

#include <utility>

namespace pulse {

void HandlerOutbox::add(std::vector<Message> messages) {
  const std::lock_guard lock(mutex_);
  if (!notify_) return;
  const bool was_empty = messages_.empty();
  for (Message& message : messages) messages_.push_back(std::move(message));
  if (was_empty) notify_();
}

std::vector<HandlerOutbox::Message> HandlerOutbox::take() {
  std::vector<Message> taken;
  const std::lock_guard lock(mutex_);
  taken.swap(messages_);
  return taken;
}

// Runs and outbox hold each other while the outbox has messages.
void HandlerOutbox::close() {
  std::vector<Message> dropped;
  const std::lock_guard lock(mutex_);
  notify_ = nullptr;
  dropped.swap(messages_);
}

void HandlerRun::report(const TaskProgress& progress) {
  {
    const std::lock_guard lock(mutex_);
    pending_.take_newer(progress);
    if (is_told_) return;
    is_told_ = true;
  }
  outbox_->add({{shared_from_this(), std::nullopt}});
}

TaskProgress HandlerRun::take_progress() {
  const std::lock_guard lock(mutex_);
  return std::exchange(pending_, {});
}

void HandlerRun::listen_again() {
  {
    const std::lock_guard lock(mutex_);
    is_told_ = !pending_.empty();
    if (!is_told_) return;
  }
  outbox_->add({{shared_from_this(), std::nullopt}});
}

void HandlerRun::request_stop(EndReason reason) {
  EndReason none = EndReason::none;
  if (reason_.compare_exchange_strong(none, reason)) stop_.request_stop();
}

}  // namespace pulse
