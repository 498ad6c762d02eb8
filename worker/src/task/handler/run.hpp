// Handler run: one job in the hands of a C++ handler, shared by the loop's thread and the handler's
// thread.
//
// Invariants:
// - `reason_` changes once, from none to the first reason; only the loop's thread changes it.
// - `execution` belongs to the loop's thread; the pool's mutex guards `state`; the other fields
//   name their guard or are constant.
// - `is_told_` is true from a message about progress until listen_again() finds no more progress.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <vector>

#include "jobs/execution.hpp"
#include "jobs/execution_report.hpp"
#include "jobs/job.hpp"

namespace pulse {

class HandlerRun;
class HandlerExecution;
using HandlerRunPtr = std::shared_ptr<HandlerRun>;

// From any thread to the loop's. Messages that come together travel together: only the first
// message since the last take() calls `notify`.
class HandlerOutbox {
 public:
  struct Message {
    HandlerRunPtr run;
    std::optional<ExecutionEnd> end;  // empty: the run has progress
  };

  explicit HandlerOutbox(std::function<void()> notify) : notify_(std::move(notify)) {}
  void add(std::vector<Message> messages);
  std::vector<Message> take();
  // The loop has ended: drops all messages, also later messages.
  void close();

 private:
  std::mutex mutex_;
  std::vector<Message> messages_;  // guarded by mutex_
  std::function<void()> notify_;   // guarded by mutex_
};

class HandlerRun : public std::enable_shared_from_this<HandlerRun> {
 public:
  HandlerRun(TaskInput input, std::shared_ptr<HandlerOutbox> outbox)
      : input_(std::move(input)), outbox_(std::move(outbox)) {}

  const TaskInput& input() const { return input_; }

  // Any thread.
  std::stop_token stop_token() const { return stop_.get_token(); }
  EndReason stop_reason() const { return reason_; }
  void report(const TaskProgress& progress);

  // The loop's thread. The first reason stays.
  void request_stop(EndReason reason);
  TaskProgress take_progress();
  // The loop hears of progress again. Until then progress is only merged.
  void listen_again();
  HandlerExecution* execution = nullptr;  // while the executor has the run

  // The pool's mutex guards the state.
  enum class State { queued, running, done, withdrawn };
  State state = State::queued;

 private:
  const TaskInput input_;
  const std::shared_ptr<HandlerOutbox> outbox_;
  std::stop_source stop_;
  std::atomic<EndReason> reason_{EndReason::none};

  std::mutex mutex_;
  TaskProgress pending_;  // guarded by mutex_
  bool is_told_ = false;  // guarded by mutex_: the loop knows that something is pending
};

}  // namespace pulse
