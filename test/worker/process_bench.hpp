// Persistent processes: shell scripts under real minders, on a real loop with a limit on every
// wait.
#pragma once

#include <gtest/gtest.h>

#include <csignal>
#include <map>
#include <memory>
#include <string>

#include "log_capture.hpp"
#include "task/process/tasks.hpp"
#include "task_bench.hpp"

namespace pulse {

class ProcessBench : public ::testing::Test {
 protected:
  void SetUp() override {
    signal(SIGPIPE, SIG_IGN);  // as main() does
    std::string pattern = std::filesystem::temp_directory_path() / "pulse-process-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    place_ = pattern;
    registration_.sweep_threshold = std::chrono::seconds(60);
    registration_.heartbeat_interval = std::chrono::seconds(5);
  }
  ~ProcessBench() override {
    tasks_.clear();
    processes_.reset();
    loop_.reset();  // ends only when every minder is reaped
    std::filesystem::remove_all(place_);
  }

  // Jobs of `mail` are run by this script, in so many processes at most.
  void given_script(const std::string& script, std::size_t slots = 1) {
    given_command({"mail", {"sh", "-c", script}}, slots);
  }
  void given_command(const ProcessCommand& command, std::size_t slots = 1) {
    processes_ = std::make_unique<ProcessTasks>(
        std::vector{command},
        ProcessSettings{*loop_, PULSE_MINDER_PATH, {}, [] { return 0.5; }, capture_.log()});
    processes_->has_free_slot = [this, slots] { return processes_->busy() < slots; };
    processes_->slot_awaited_since = [this] { return slot_awaited_since_; };
    processes_->on_more_extra = [this] { max_extra_ = std::max(max_extra_, processes_->extra()); };
  }

  void start(std::int64_t id, const std::string& payload = "null") {
    HeldJob job;
    job.job.input.job_id = id;
    job.job.input.token = 100 + id;
    job.job.input.identifier = "mail";
    job.job.input.payload_json = payload;
    job.arrived_at = loop_->timers().now();
    ExecutionCallbacks callbacks;
    callbacks.on_progress = [this, id](const TaskProgress& progress) {
      progress_[id].take_newer(progress);
    };
    callbacks.on_end = [this, id](const ExecutionEnd& end) {
      EXPECT_FALSE(ends_.contains(id)) << "a second end of " << id;
      ends_[id] = end;
      tasks_.erase(id);
    };
    ExecutionStart started =
        processes_->start(job, registration_, loop_->timers().now(), std::move(callbacks));
    ASSERT_TRUE(started.execution);
    tasks_[id] = std::move(started.execution);
  }
  void stop(std::int64_t id, EndReason reason, Duration grace) {
    tasks_.at(id)->explain(reason);
    tasks_.at(id)->terminate(grace);
  }

  // Turns the loop until `state` holds; fails the test when that takes too long.
  void turn_until(const std::function<bool()>& state) {
    bool is_late = false;
    Timer limit(loop_->timers(), [&] { is_late = true; });
    limit.start_in(kTestLimit);
    while (!is_late && !state()) uv_run(loop_->uv(), UV_RUN_ONCE);
    ASSERT_FALSE(is_late) << "the state did not come";
  }
  const ExecutionEnd& end_of(std::int64_t id) {
    turn_until([&] { return ends_.contains(id); });
    return ends_[id];
  }
  std::string result_of(std::int64_t id) {
    const ExecutionEnd& end = end_of(id);
    return end.result.value_or("none: " + end.error);
  }
  void wait_for_message(std::int64_t id) {
    turn_until([&] { return progress_[id].message.has_value(); });
  }

  std::string path_of(const std::string& name) const { return place_ / name; }

  std::filesystem::path place_;
  const SystemClock clock_;
  std::unique_ptr<EventLoop> loop_ = std::make_unique<EventLoop>(clock_);
  LogCapture capture_;
  Registration registration_;
  std::unique_ptr<ProcessTasks> processes_;
  std::map<std::int64_t, std::unique_ptr<Execution>> tasks_;
  std::map<std::int64_t, TaskProgress> progress_;
  std::map<std::int64_t, ExecutionEnd> ends_;
  std::size_t max_extra_ = 0;
  std::optional<TimePoint> slot_awaited_since_;
};

// Parts of scripts: takes the next job, whose id is in $id then; says something of it.
inline const std::string kTake = "read -r line; id=${line#*:}; id=${id%%,*}; ";
inline const std::string kBegun = R"(echo "{\"id\":$id,\"message\":\"begun\"}"; )";
inline const std::string kDone = R"(echo "{\"id\":$id,\"result\":$$}"; )";

}  // namespace pulse
