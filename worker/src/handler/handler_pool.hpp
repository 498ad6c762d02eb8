// The threads that run C++ handlers, and the queues in front of them.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "handler/handler_run.hpp"

namespace pulse {

// Answers for each of the runs, in order. An exception is the answer for all of them.
using HandlerCode = std::function<std::vector<ExecutionEnd>(std::span<const HandlerRunPtr>)>;

struct HandlerEntry {
  std::size_t max_at_once = 1;
  HandlerCode code;
};
using Handlers = std::unordered_map<std::string, HandlerEntry>;  // by task

class HandlerPool {
 public:
  HandlerPool(std::size_t threads, const Handlers& handlers, std::shared_ptr<HandlerOutbox> outbox);
  // Threads whose handlers do not return are left behind.
  ~HandlerPool();
  HandlerPool(const HandlerPool&) = delete;
  HandlerPool& operator=(const HandlerPool&) = delete;

  bool has(const std::string& task) const { return state_->queues.contains(task); }
  // Each of a task that it has.
  void add(const std::vector<HandlerRunPtr>& runs);
  // True: the run had not begun, and never will.
  bool withdraw(const HandlerRunPtr& run);
  bool is_running(const HandlerRunPtr& run) const;
  // Threads that run something, or soon will; at most one for each run that waits.
  std::size_t in_use() const;

 private:
  struct Queue {
    HandlerEntry entry;
    std::deque<HandlerRunPtr> runs;  // also withdrawn ones
  };
  // Outlives the pool in threads that are left behind.
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    std::unordered_map<std::string, Queue> queues;  // the runs in them are guarded by mutex
    std::deque<Queue*> turns;                       // one for each run that was added
    std::vector<bool> is_busy;                      // by thread
    bool is_closing = false;
    std::shared_ptr<HandlerOutbox> outbox;
  };

  static void run_thread(State& state, std::size_t number);
  static std::vector<HandlerRunPtr> next_runs(State& state, std::unique_lock<std::mutex>& lock,
                                              const Queue*& queue);
  static void run_code(const Queue& queue, const std::vector<HandlerRunPtr>& runs,
                       std::vector<HandlerOutbox::Message>& messages);

  const std::shared_ptr<State> state_;
  std::vector<std::thread> threads_;
};

}  // namespace pulse
