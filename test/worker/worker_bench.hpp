// A whole worker on a fake clock, with the test as its server and its machine.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fake_clock.hpp"
#include "fake_connection.hpp"
#include "log_capture.hpp"
#include "server_answers.hpp"
#include "worker.hpp"

namespace pulse {

using namespace std::chrono_literals;

// What the test knows of a task that was started.
struct FakeExecutionState {
  ExecutionCallbacks callbacks;
  TimePoint alive_as_of{};
  std::vector<Duration> terminations;  // the grace of each call
  bool exists = true;
};

class FakeExecution final : public Execution {
 public:
  explicit FakeExecution(std::shared_ptr<FakeExecutionState> state) : state_(std::move(state)) {}
  ~FakeExecution() override { state_->exists = false; }
  void ping(TimePoint alive_as_of) override { state_->alive_as_of = alive_as_of; }
  void terminate(Duration grace) override { state_->terminations.push_back(grace); }

 private:
  std::shared_ptr<FakeExecutionState> state_;
};

class WorkerBench : public ::testing::Test {
 protected:
  static constexpr std::int64_t kWorkerId = 7;

  // The worker, registered and attached, whose first claim waits for its answer.
  void given_worker(int concurrency = 1, bool once = false) {
    given_unregistered_worker(concurrency, once);
    heartbeat_.accept();
    claim_.accept();
    turn();
    ASSERT_EQ(heartbeat_.running(), "register_worker");
    heartbeat_.answer(registered(kWorkerId, sweep_interval_));
    turn();
    ASSERT_EQ(heartbeat_.running(), "attach_worker");
    heartbeat_.answer(done());
    turn();
    ASSERT_EQ(heartbeat_.running(), "handler_tasks");
    heartbeat_.answer(handler_tasks());
    turn();
    ASSERT_EQ(claim_.running(), "claim");
  }

  void given_unregistered_worker(int concurrency = 1, bool once = false) {
    config_.name = "bench";
    config_.concurrency = concurrency;
    config_.once = once;
    worker_ = std::make_unique<Worker>(
        config_, "{}", 5s, Connections{claim_, finish_, heartbeat_}, start_task_, timers_,
        [this] { return random_; }, capture_.log());
    worker_->on_finished = [this](ExitCode code) { exit_code_ = code; };
    worker_->is_process_gone = is_process_gone_;
    worker_->serve(served_);
    worker_->start();
  }

  // The worker runs these jobs, having asked for more than it got.
  void given_running(const std::vector<GivenJob>& jobs) {
    claim_.answer(claimed(jobs));
    turn();
    for (const GivenJob& job : jobs) ASSERT_TRUE(is_running(job.id)) << job.id;
  }

  ExecutionStart start_task(const HeldJob& job, TimePoint alive_as_of,
                            ExecutionCallbacks callbacks) {
    started_.push_back(job.job.input.job_id);
    const auto refusal = refusals_.find(job.job.input.job_id);
    if (refusal != refusals_.end()) {
      return {nullptr, refusal->second.is_transient, refusal->second.error};
    }
    auto state = std::make_shared<FakeExecutionState>();
    state->callbacks = std::move(callbacks);
    state->alive_as_of = alive_as_of;
    tasks_[job.job.input.job_id] = state;
    return {std::make_unique<FakeExecution>(state), false, {}};
  }

  static ExecutionEnd success(std::optional<std::string> result = std::nullopt) {
    ExecutionEnd end;
    end.kind = ExecutionEnd::Kind::succeeded;
    end.result = std::move(result);
    return end;
  }
  static ExecutionEnd failure(int exit_code, const std::string& error) {
    ExecutionEnd end;
    end.kind = exit_code == 100 ? ExecutionEnd::Kind::failed_for_good : ExecutionEnd::Kind::failed;
    end.exit_code = exit_code;
    end.error = error;
    return end;
  }
  static ExecutionEnd killed() {
    ExecutionEnd end;
    end.kind = ExecutionEnd::Kind::signalled;
    end.signal = 9;
    end.stopped_by = ExecutionEnd::StoppedBy::worker;
    end.error = "killed by signal 9";
    return end;
  }

  void end_task(std::int64_t job_id, ExecutionEnd end = success()) {
    const auto on_end = tasks_.at(job_id)->callbacks.on_end;
    on_end(end);
    turn();
  }

  bool is_running(std::int64_t job_id) const {
    const auto task = tasks_.find(job_id);
    return task != tasks_.end() && task->second->exists;
  }
  bool was_terminated(std::int64_t job_id) const {
    return !tasks_.at(job_id)->terminations.empty();
  }

  int finish_pid() const { return FakeConnection::kBackendPid + (are_outcomes_apart_ ? 1 : 0); }

  // The end of an iteration of the loop. The connection for outcomes comes up at once, if it may,
  // but for one that the test has ended.
  void turn() {
    settle(timers_);
    if (!is_finish_to_be_had_ || !finish_.is_opening() || finish_.was_lost()) return;
    finish_.accept(finish_pid());
    settle(timers_);
  }
  // Time passes; beats that fall due meanwhile are answered well.
  void pass_beating(std::chrono::nanoseconds by) {
    const TimePoint end = clock_.now() + by;
    answer_beat();
    while (timers_.next_due() && *timers_.next_due() <= end) {
      clock_.move_to(*timers_.next_due());
      turn();
      answer_beat();
    }
    clock_.move_to(end);
    turn();
    answer_beat();
  }
  void pass_time(std::chrono::nanoseconds by) { pass(clock_, timers_, by); }
  void answer_beat() {
    while (heartbeat_.running() == "heartbeat") {
      heartbeat_.answer(beat("alive", "{}", "{}", background_sweeps_));
      turn();
    }
  }

  struct Refusal {
    bool is_transient = false;
    std::string error;
  };

  FakeClock clock_;
  Timers timers_{clock_};
  double random_ = 0.5;
  QueryResult::Cell background_sweeps_ = "off";
  std::string sweep_interval_ = "-1.000000";  // off, so that sweeps are in no other test's way
  LogCapture capture_;
  FakeConnection claim_;
  FakeConnection finish_;
  FakeConnection heartbeat_;
  std::map<std::int64_t, Refusal> refusals_;  // tasks that do not start, by job
  std::map<std::int64_t, std::shared_ptr<FakeExecutionState>> tasks_;
  std::vector<std::int64_t> started_;
  HostCheck::IsGone is_process_gone_;  // none, so that the look is in no other test's way
  std::vector<std::string> served_{"mail", "report"};  // by executables
  bool are_outcomes_apart_ = false;  // as a pooler gets them: no claim takes them along
  bool is_finish_to_be_had_ = true;  // else the test opens it
  std::optional<ExitCode> exit_code_;
  Config config_;
  StartExecution start_task_ = [this](const HeldJob& job, const Registration&,
                                      TimePoint alive_as_of, ExecutionCallbacks callbacks) {
    return start_task(job, alive_as_of, std::move(callbacks));
  };
  std::unique_ptr<Worker> worker_;
};

}  // namespace pulse
