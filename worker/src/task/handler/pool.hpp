// Handler pool: the threads that run C++ handlers, and the queues in front of them.
//
// Invariants:
// - `State::mutex` guards `changed`, `pending`, `is_busy`, `is_closing`, the runs of each queue and
//   `HandlerRun::state`. `queues` as a map and each `entry` are constant after the constructor.
// - A run is queued, then running, then done; or queued, then withdrawn. Only a thread of the pool
//   begins a run.
// - `pending` has one entry for each run added that no thread has come to yet, also for runs
//   withdrawn since.
// - The state outlives the pool in threads that are left behind.
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

#include "task/handler/run.hpp"

namespace pulse {

// Answers for each of the runs, in order. An exception is the answer for all runs.
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
  // Each run is of a task that the pool has.
  void add(const std::vector<HandlerRunPtr>& runs);
  // True: the run had not begun, and never will.
  bool withdraw(const HandlerRunPtr& run);
  bool is_running(const HandlerRunPtr& run) const;
  // Threads that run something, or soon will; at most one for each run that waits.
  std::size_t in_use() const;

 private:
  struct Queue {
    HandlerEntry entry;
    std::deque<HandlerRunPtr> runs;  // also withdrawn runs
  };
  // Outlives the pool in threads that are left behind.
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    std::unordered_map<std::string, Queue> queues;  // mutex guards the runs in each queue
    std::deque<Queue*> pending;                     // an entry for each run that was added
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
