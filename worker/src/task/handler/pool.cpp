#include "task/handler/pool.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "base/loop/signals_blocked.hpp"
#include "base/text/stderr_tail.hpp"

namespace pulse {
namespace {

ExecutionEnd failed_end(std::string_view error, const char* reason) {
  ExecutionEnd end;
  end.kind = ExecutionEnd::Kind::failed;
  end.error = storable_text(error);
  end.reason = reason;
  return end;
}

std::vector<ExecutionEnd> call(const HandlerCode& code, std::span<const HandlerRunPtr> runs) {
  try {
    std::vector<ExecutionEnd> ends = code(runs);
    const std::string text = "the handler answered for " + std::to_string(ends.size()) + " of " +
                             std::to_string(runs.size()) + " jobs";
    if (ends.size() < runs.size()) ends.resize(runs.size(), failed_end(text, "no answer"));
    return ends;
  } catch (const std::exception& error) {
    return std::vector<ExecutionEnd>(runs.size(), failed_end(error.what(), "exception"));
  } catch (...) {
    return std::vector<ExecutionEnd>(
        runs.size(), failed_end("an exception that is no std::exception", "exception"));
  }
}

}  // namespace

HandlerPool::HandlerPool(std::size_t threads, const Handlers& handlers,
                         std::shared_ptr<HandlerOutbox> outbox)
    : state_(std::make_shared<State>()) {
  for (const auto& [task, entry] : handlers) state_->queues[task].entry = entry;
  state_->outbox = std::move(outbox);
  state_->is_busy.resize(threads);
  const SignalsBlocked blocked;
  for (std::size_t number = 0; number < threads; ++number) {
    threads_.emplace_back([state = state_, number] { run_thread(*state, number); });
  }
}

HandlerPool::~HandlerPool() {
  std::vector<bool> is_busy;
  {
    const std::lock_guard lock(state_->mutex);
    state_->is_closing = true;
    is_busy = state_->is_busy;
  }
  state_->changed.notify_all();
  for (std::size_t number = 0; number < threads_.size(); ++number) {
    if (is_busy[number]) {
      threads_[number].detach();
    } else {
      threads_[number].join();
    }
  }
}

void HandlerPool::add(const std::vector<HandlerRunPtr>& runs) {
  {
    const std::lock_guard lock(state_->mutex);
    for (const HandlerRunPtr& run : runs) {
      if (run->state != HandlerRun::State::queued) continue;
      Queue& queue = state_->queues.at(run->input().identifier);
      queue.runs.push_back(run);
      state_->pending.push_back(&queue);
    }
  }
  if (runs.size() == 1) {
    state_->changed.notify_one();
  } else {
    state_->changed.notify_all();
  }
}

bool HandlerPool::withdraw(const HandlerRunPtr& run) {
  const std::lock_guard lock(state_->mutex);
  if (run->state != HandlerRun::State::queued) return false;
  run->state = HandlerRun::State::withdrawn;
  return true;
}

bool HandlerPool::is_running(const HandlerRunPtr& run) const {
  const std::lock_guard lock(state_->mutex);
  return run->state == HandlerRun::State::running;
}

std::size_t HandlerPool::in_use() const {
  const std::lock_guard lock(state_->mutex);
  const auto busy = std::count(state_->is_busy.begin(), state_->is_busy.end(), true);
  return static_cast<std::size_t>(busy) + state_->pending.size();
}

void HandlerPool::run_thread(State& state, std::size_t number) {
  std::vector<HandlerOutbox::Message> messages;
  std::unique_lock lock(state.mutex);
  for (;;) {
    const Queue* queue = nullptr;
    const std::vector<HandlerRunPtr> runs = next_runs(state, lock, queue);
    if (runs.empty()) return;
    state.is_busy[number] = true;
    lock.unlock();
    run_code(*queue, runs, messages);
    lock.lock();
    for (const HandlerRunPtr& run : runs) run->state = HandlerRun::State::done;
    state.is_busy[number] = false;
    lock.unlock();
    state.outbox->add(std::exchange(messages, {}));
    lock.lock();
  }
}

// Waits for the next pending run; nothing means that the pool is closing.
std::vector<HandlerRunPtr> HandlerPool::next_runs(State& state, std::unique_lock<std::mutex>& lock,
                                                  const Queue*& queue) {
  std::vector<HandlerRunPtr> runs;
  while (runs.empty()) {
    state.changed.wait(lock, [&] { return state.is_closing || !state.pending.empty(); });
    if (state.is_closing) break;
    Queue& next = *state.pending.front();
    state.pending.pop_front();
    queue = &next;
    while (!next.runs.empty() && runs.size() < next.entry.max_at_once) {
      const HandlerRunPtr run = std::move(next.runs.front());
      next.runs.pop_front();
      if (run->state != HandlerRun::State::queued) continue;
      run->state = HandlerRun::State::running;
      runs.push_back(run);
    }
  }
  return runs;
}

void HandlerPool::run_code(const Queue& queue, const std::vector<HandlerRunPtr>& runs,
                           std::vector<HandlerOutbox::Message>& messages) {
  const auto began = BootClock::now();
  std::vector<ExecutionEnd> ends = call(queue.entry.code, runs);
  const std::chrono::nanoseconds took = BootClock::now() - began;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    ends[i].ran_for = took;
    ends[i].is_answer = true;
    messages.push_back({runs[i], std::move(ends[i])});
  }
}

}  // namespace pulse
