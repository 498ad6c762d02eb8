// A whole worker on a fake clock whose tasks are real handlers on real threads.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>

#include "task/handler/tasks.hpp"
#include "worker_bench.hpp"

namespace pulse {

// Where a handler waits until the test lets it go on.
class Gate {
 public:
  void open() {
    is_open_ = true;
    is_open_.notify_all();
  }
  void pass() { is_open_.wait(false); }

 private:
  std::atomic<bool> is_open_{false};
};

class HandlerBench : public WorkerBench {
 protected:
  ~HandlerBench() override {
    gate_.open();
    worker_.reset();
    outbox_->close();
  }

  // A handler that takes `most` jobs at once.
  void handle(const std::string& task, HandlerCode code, std::size_t max_jobs = 1) {
    handlers_[task] = {max_jobs, std::move(code)};
  }

  void given_handlers(std::size_t threads, int slots, int prefetch = 10) {
    config_.prefetch = prefetch;
    config_.tasks_queue = true;
    pool_ = std::make_unique<HandlerPool>(threads, handlers_, outbox_);
    policy_.end_process = [this] { ++ended_; };
    tasks_of_pool_ =
        std::make_unique<HandlerTasks>(policy_, *pool_, outbox_, timers_, capture_.log());
    start_task_ = tasks_of_pool_->starter();
    are_outcomes_apart_ = true;
    given_worker(slots);
  }

  // Jobs are claimed; their handlers begin as threads come free.
  void given_jobs(const std::vector<GivenJob>& jobs) {
    claim_.answer(claimed(jobs));
    turn();
  }

  // Waits for the next that handlers have to say, and takes it.
  void take_messages() {
    {
      std::unique_lock lock(mutex_);
      told_.wait(lock, [this] { return is_told_; });
      is_told_ = false;
    }
    tasks_of_pool_->take_messages();
    turn();
  }
  // The same until this is reported; what is reported of progress before is accepted.
  void take_messages_until(const std::string& statement) {
    while (finish_.running() != statement) {
      if (finish_.running() == "progress") {
        last_checkpoint_ = finish_.param(4);
        finish_.answer(done());
        turn();
      } else {
        take_messages();
      }
    }
  }
  void accept(const std::vector<std::int64_t>& jobs) {
    std::vector<std::pair<std::int64_t, std::string>> answers;
    for (const std::int64_t job : jobs) answers.emplace_back(job, "accepted");
    finish_.answer(outcomes(answers));
    turn();
  }
  // The next beat has this answer.
  void hear(const QueryResult& answer) {
    while (heartbeat_.running().empty()) pass_time(1s);
    ASSERT_EQ(heartbeat_.running(), "heartbeat");
    heartbeat_.answer(answer);
    turn();
  }

  // A handler that begins, waits for its stop token, and answers.
  HandlerCode until_stopped(ExecutionEnd answer = success()) {
    return [this, answer](std::span<const HandlerRunPtr> runs) {
      begun_.open();
      std::mutex mutex;
      std::condition_variable_any stopped;
      std::unique_lock lock(mutex);
      stopped.wait(lock, runs[0]->stop_token(), [] { return false; });
      reason_ = runs[0]->stop_reason();
      return std::vector<ExecutionEnd>{answer};
    };
  }
  // A handler that begins and waits at the gate, whatever it is told.
  HandlerCode stubborn() {
    return [this](std::span<const HandlerRunPtr> runs) {
      begun_.open();
      gate_.pass();
      return std::vector<ExecutionEnd>(runs.size(), success());
    };
  }
  // A handler that does this and succeeds.
  static HandlerCode doing(std::function<void(HandlerRun&)> action) {
    return [action = std::move(action)](std::span<const HandlerRunPtr> runs) {
      for (const HandlerRunPtr& run : runs) action(*run);
      return std::vector<ExecutionEnd>(runs.size(), success());
    };
  }
  static HandlerCode answering(const ExecutionEnd& end) {
    return [end](std::span<const HandlerRunPtr> runs) {
      return std::vector<ExecutionEnd>(runs.size(), end);
    };
  }

  std::mutex mutex_;
  std::condition_variable told_;
  bool is_told_ = false;  // guarded by mutex_
  std::shared_ptr<HandlerOutbox> outbox_ = std::make_shared<HandlerOutbox>([this] {
    const std::lock_guard lock(mutex_);
    is_told_ = true;
    told_.notify_one();
  });
  Handlers handlers_;
  HandlerPolicy policy_;
  Gate begun_;
  Gate gate_;
  std::atomic<EndReason> reason_{EndReason::none};
  int ended_ = 0;
  std::string last_checkpoint_;
  std::unique_ptr<HandlerPool> pool_;
  std::unique_ptr<HandlerTasks> tasks_of_pool_;
};

}  // namespace pulse
