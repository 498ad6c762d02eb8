#include "base/loop/blocking_calls.hpp"

#include <thread>
#include <utility>

#include "base/loop/signals_blocked.hpp"

namespace pulse {

BlockingCalls::~BlockingCalls() {
  const std::lock_guard lock(state_->mutex);
  state_->is_closed = true;
  state_->changed.notify_all();
}

std::error_code BlockingCalls::run(std::function<void()> call) {
  const std::lock_guard lock(state_->mutex);
  if (state_->has_spare) {
    state_->has_spare = false;
    state_->next = std::move(call);
    state_->changed.notify_all();
    return {};
  }
  if (state_->threads >= state_->max_threads)
    return make_error_code(std::errc::device_or_resource_busy);
  try {
    const SignalsBlocked blocked;
    std::thread([state = state_, call = std::move(call)]() mutable {
      run_thread(*state, std::move(call));
    }).detach();
  } catch (const std::system_error& error) {
    return error.code();
  }
  ++state_->threads;
  return {};
}

void BlockingCalls::run_thread(State& state, std::function<void()> call) {
  while (call) {
    call();
    call = nullptr;  // frees the captures of the call before the wait
    call = await_next(state);
  }
}

// Nothing: the thread is to end.
std::function<void()> BlockingCalls::await_next(State& state) {
  std::unique_lock lock(state.mutex);
  if (!state.has_spare && !state.is_closed) {
    state.has_spare = true;
    state.changed.wait(lock, [&] { return !state.has_spare || state.is_closed; });
    if (state.next) return std::exchange(state.next, nullptr);
  }
  --state.threads;
  return nullptr;
}

}  // namespace pulse
