// Running tasks: their limits, and what is reported about how they ended.
#include "worker_bench.hpp"

namespace pulse {
namespace {

class ExecutorTest : public WorkerBench {
 protected:
  ExecutorTest() { are_outcomes_apart_ = true; }

  void report_progress(std::int64_t job_id) {
    TaskProgress progress;
    progress.fraction = 0.5;
    tasks_.at(job_id)->callbacks.on_progress(progress);
    turn();
    finish_.answer(done());
    turn();
  }
};

TEST_F(ExecutorTest, exit_codes_and_signals_become_failures_with_their_text) {
  given_worker(3);
  given_running({{.id = 1}});
  end_task(1, failure(3, "exited with code 3: boom"));
  EXPECT_EQ(finish_.param(2), R"({"exited with code 3: boom"})");
  EXPECT_EQ(finish_.param(3), "{t}");
  finish_.answer(outcomes({{1, "accepted"}}));
  EXPECT_TRUE(
      capture_.has("failed job=1 task=mail attempt=1 worker=7 outcome=failed "
                   "duration_ms=0 reason=\"exit code 3: boom\""));
}

TEST_F(ExecutorTest, no_beat_is_late_because_of_starts) {
  constexpr int kJobs = 1000;
  const auto start = std::exchange(start_task_, nullptr);
  start_task_ = [&](const HeldJob& job, const Registration& registration, TimePoint alive_as_of,
                    ExecutionCallbacks callbacks) {
    clock_.advance(14ms);  // until the exec, on a busy machine
    return start(job, registration, alive_as_of, std::move(callbacks));
  };
  given_worker(kJobs);
  std::vector<GivenJob> jobs;
  for (int id = 1; id <= kJobs; ++id) jobs.push_back({.id = id});
  claim_.answer(claimed(jobs));
  ASSERT_LE(started_.size(), 2U);
  TimePoint last_beat = clock_.now();
  while (started_.size() < kJobs) {
    const std::size_t before = started_.size();
    timers_.run_due();
    ASSERT_LE(started_.size() - before, 2U);
    if (heartbeat_.running() != "heartbeat") continue;
    EXPECT_LT(clock_.now() - last_beat, 5s + 150ms);
    last_beat = clock_.now();
    heartbeat_.answer(beat());
  }
  EXPECT_FALSE(was_terminated(1));
}

TEST_F(ExecutorTest, the_log_of_a_failure_has_the_last_line_of_what_was_said) {
  given_worker();
  given_running({{.id = 1}});
  end_task(1, failure(1, "exited with code 1: Traceback:\n  File x\nValueError: a: b"));
  finish_.answer(outcomes({{1, "accepted"}}));
  EXPECT_TRUE(capture_.has("reason=\"exit code 1: ValueError: a: b\"")) << capture_.text();
}

TEST_F(ExecutorTest, the_log_of_a_failure_quotes_no_frame_of_a_stack) {
  given_worker();
  given_running({{.id = 1}});
  ExecutionEnd end = failure(1, "Error: no such customer\n    at find (shop.js:7)\n    at run\n");
  end.is_answer = true;
  end_task(1, end);
  finish_.answer(outcomes({{1, "accepted"}}));
  EXPECT_TRUE(capture_.has("reason=\"Error: no such customer\"")) << capture_.text();
}

TEST_F(ExecutorTest, the_log_of_an_answer_is_its_error) {
  given_worker();
  given_running({{.id = 1}});
  ExecutionEnd end = failure(1, "no such: customer");
  end.reason = "its answer";
  end.is_answer = true;
  end_task(1, end);
  finish_.answer(outcomes({{1, "accepted"}}));
  EXPECT_TRUE(capture_.has("reason=\"no such: customer\"")) << capture_.text();
}

TEST_F(ExecutorTest, what_could_not_be_started_says_why) {
  given_worker();
  given_running({{.id = 1}});
  ExecutionEnd end;
  end.kind = ExecutionEnd::Kind::not_started;
  end.error = "cannot execute /t/a: its first line names /bin/x, which was not found";
  end_task(1, end);
  finish_.answer(outcomes({{1, "accepted"}}));
  EXPECT_TRUE(capture_.has("reason=\"cannot execute /t/a: its first line names /bin/x"));
}

TEST_F(ExecutorTest, where_output_is_discarded_what_a_task_wrote_stays_out_of_the_log) {
  config_.task_output = TaskOutputUse::discard;
  given_worker();
  given_running({{.id = 1}});
  end_task(1, failure(1, "exited with code 1: password=hunter2"));
  finish_.answer(outcomes({{1, "accepted"}}));
  const std::string text = capture_.text();
  EXPECT_EQ(text.find("hunter2"), std::string::npos);
  EXPECT_EQ(text.find("\"n\""), std::string::npos) << "the payload";
}

TEST_F(ExecutorTest, tokens_stay_out_of_the_log) {
  given_worker();
  given_running({{.id = 1, .token = 987654321}});
  end_task(1);
  finish_.answer(outcomes({{1, "stale"}}));
  EXPECT_FALSE(capture_.has("987654321"));
}

TEST_F(ExecutorTest, a_task_that_is_not_there_fails_with_the_reason) {
  refusals_[1] = {false, "there is no task mail"};
  given_worker();
  claim_.answer(claimed({{.id = 1}}));
  turn();
  ASSERT_EQ(claim_.with_claim(), "fail_many");
  EXPECT_EQ(claim_.with_claim_params()[2], R"({"there is no task mail"})");
  EXPECT_EQ(claim_.with_claim_params()[3], "{t}");
}

TEST_F(ExecutorTest, a_task_that_the_machine_could_not_start_is_released) {
  given_worker();
  given_running({{.id = 1}});
  ExecutionEnd end;
  end.kind = ExecutionEnd::Kind::not_started;
  end.is_transient = true;
  end.error = "out of memory";
  end_task(1, end);
  EXPECT_EQ(finish_.running(), "release");
}

TEST_F(ExecutorTest, a_task_that_cannot_be_executed_fails) {
  given_worker();
  given_running({{.id = 1}});
  ExecutionEnd end;
  end.kind = ExecutionEnd::Kind::not_started;
  end.error = "not a program";
  end_task(1, end);
  EXPECT_EQ(finish_.running(), "fail_many");
}

TEST_F(ExecutorTest, at_its_timeout_a_task_is_terminated_and_failed) {
  given_worker();
  given_running({{.id = 1, .timeout = "30.000000"}});
  pass_beating(30s - 1ns);
  EXPECT_FALSE(was_terminated(1));
  pass_beating(1ns);
  ASSERT_TRUE(was_terminated(1));
  EXPECT_EQ(tasks_.at(1)->terminations[0], 5s);
  end_task(1, killed());
  ASSERT_EQ(finish_.running(), "fail_late") << "what a sweep that comes first records";
  EXPECT_EQ(finish_.param(2), "{\"timed out after 30s\nkilled by signal 9\"}");
  EXPECT_EQ(finish_.param(3), R"({"timeout"})");
}

TEST_F(ExecutorTest, what_is_left_of_a_job_goes_with_its_failure) {
  given_worker(2);
  given_running({{.id = 1}, {.id = 2, .timeout = "1.000000"}});
  ExecutionEnd end = failure(1, "2 of 3 refused");
  end.payload = "[2,3]";
  end_task(1, end);
  ASSERT_EQ(finish_.running(), "fail_many");
  EXPECT_EQ(finish_.param(5), R"({"[2,3]"})");
  finish_.answer(outcomes({{1, "accepted"}}));
  pass_beating(1s);
  end = killed();
  end.payload = "[4]";
  end_task(2, end);
  ASSERT_EQ(finish_.running(), "fail_late");
  EXPECT_EQ(finish_.param(4), R"({"[4]"})");
}

TEST_F(ExecutorTest, what_is_left_of_a_job_that_succeeds_is_nothing) {
  given_worker();
  given_running({{.id = 1}});
  ExecutionEnd end = success();
  end.payload = "[2,3]";
  end_task(1, end);
  EXPECT_EQ(finish_.running(), "complete_many");
}

TEST_F(ExecutorTest, a_role_that_lacks_fail_late_fails_the_job) {
  given_worker();
  given_running({{.id = 1, .timeout = "1.000000"}});
  pass_beating(1s);
  end_task(1, killed());
  ASSERT_EQ(finish_.running(), "fail_late");
  finish_.answer(SqlError{"42501", "permission denied for function fail_late", {}, {}, {}});
  pass_beating(1s);
  ASSERT_EQ(finish_.running(), "fail_many");
}

TEST_F(ExecutorTest, a_task_that_ends_well_after_its_timeout_has_timed_out_all_the_same) {
  given_worker();
  given_running({{.id = 1, .timeout = "1.000000"}});
  pass_beating(1s);
  end_task(1, success());
  ASSERT_EQ(finish_.running(), "fail_late");
  EXPECT_EQ(finish_.param(2), R"({"timed out after 1s"})");
}

TEST_F(ExecutorTest, the_timeout_counts_from_the_claim_also_for_a_job_held_ahead) {
  given_worker(1);
  claim_.answer(claimed({{.id = 1}, {.id = 2, .timeout = "10.000000"}}));
  pass_beating(2s);
  end_task(1);
  ASSERT_TRUE(is_running(2));
  pass_beating(8s - 1ns);
  EXPECT_FALSE(was_terminated(2));
  pass_beating(1ns);
  EXPECT_TRUE(was_terminated(2));
}

TEST_F(ExecutorTest, progress_puts_off_the_stall) {
  given_worker();
  given_running({{.id = 1, .stall_timeout = "10.000000"}});
  pass_beating(9s);
  report_progress(1);
  pass_beating(10s - 1ns);
  EXPECT_FALSE(was_terminated(1));
  pass_beating(1ns);
  ASSERT_TRUE(was_terminated(1));
  end_task(1, killed());
  ASSERT_EQ(finish_.running(), "fail_late");
  EXPECT_EQ(finish_.param(2), "{\"no progress for 10s\nkilled by signal 9\"}");
  EXPECT_EQ(finish_.param(3), R"({"stall"})");
}

TEST_F(ExecutorTest, progress_does_not_put_off_the_timeout) {
  given_worker();
  given_running({{.id = 1, .timeout = "10.000000", .stall_timeout = "8.000000"}});
  pass_beating(7s);
  report_progress(1);
  pass_beating(3s);
  ASSERT_TRUE(was_terminated(1));
  end_task(1, killed());
  EXPECT_NE(finish_.param(2).find("timed out"), std::string::npos);
}

TEST_F(ExecutorTest, while_the_database_is_out_of_reach_a_task_goes_on) {
  given_worker();
  given_running({{.id = 1}});
  heartbeat_.lose();
  pass_time(1h);
  EXPECT_FALSE(was_terminated(1));
  EXPECT_GE(tasks_.at(1)->alive_as_of, clock_.now() - 12750ms / 4);
}

TEST_F(ExecutorTest, an_outage_of_the_database_times_out_no_job) {
  given_worker();
  given_running({{.id = 1, .timeout = "30.000000", .stall_timeout = "20.000000"}});
  pass_beating(10s);
  heartbeat_.lose();
  pass_time(1h);
  EXPECT_FALSE(was_terminated(1));
  heartbeat_.accept();
  turn();
  heartbeat_.answer(done());  // attached
  turn();
  heartbeat_.answer(beat());
  turn();
  EXPECT_FALSE(was_terminated(1));
  // 10 s had passed, and what a beat may be late before it counts as an outage.
  pass_beating(20s - 5s - 1275ms - 10s - 1ns);
  EXPECT_FALSE(was_terminated(1));
  pass_beating(1ns);
  ASSERT_TRUE(was_terminated(1));
  end_task(1, killed());
  EXPECT_EQ(finish_.param(3), R"({"stall"})");
}

TEST_F(ExecutorTest, after_a_pause_of_the_loop_nothing_is_started_before_a_beat) {
  given_worker(1);
  claim_.answer(claimed({{.id = 1}, {.id = 2}}));
  turn();
  clock_.advance(13s);
  const auto on_end = tasks_.at(1)->callbacks.on_end;
  on_end(success());
  EXPECT_EQ(started_, (std::vector<std::int64_t>{1}));
}

TEST_F(ExecutorTest, a_function_that_completed_its_job_leaves_nothing_to_report) {
  given_worker();
  given_running({{.id = 1, .has_handler = true}});
  ExecutionEnd end;
  end.kind = ExecutionEnd::Kind::completed;
  end_task(1, end);
  EXPECT_EQ(finish_.running(), "");
  EXPECT_TRUE(capture_.has("completed job=1"));
  pass_time(5s);
  EXPECT_EQ(heartbeat_.param(1), "{}");
}

TEST_F(ExecutorTest, a_beat_that_misses_a_completed_job_does_not_make_it_stale) {
  given_worker();
  given_running({{.id = 1, .has_handler = true}});
  pass_time(5s);
  heartbeat_.answer(beat("alive", "{1}"));  // committed, but its session has not answered yet
  turn();
  EXPECT_TRUE(was_terminated(1));
  ExecutionEnd end;
  end.kind = ExecutionEnd::Kind::completed;
  end_task(1, end);
  EXPECT_TRUE(capture_.has("completed job=1"));
}

TEST_F(ExecutorTest, an_error_of_a_function_fails_its_job) {
  given_worker();
  given_running({{.id = 1, .has_handler = true}});
  ExecutionEnd end;
  end.kind = ExecutionEnd::Kind::refused;
  end.sqlstate = "P0002";
  end.error = "P0002: no such customer\nDETAIL: 7\nHINT: add it\nCONTEXT: line 3";
  end_task(1, end);
  ASSERT_EQ(finish_.running(), "fail_many");
  EXPECT_TRUE(finish_.param(2).starts_with(R"({"P0002: no such customer)"));
  EXPECT_EQ(finish_.param(3), "{t}");
  finish_.answer(outcomes({{1, "accepted"}}));
  EXPECT_TRUE(capture_.has("reason=\"P0002: no such customer; DETAIL: 7; HINT: add it\"\n"));
}

TEST_F(ExecutorTest, after_a_lost_session_a_refused_failure_is_unknown) {
  given_worker();
  given_running({{.id = 1, .has_handler = true}});
  ExecutionEnd end;
  end.kind = ExecutionEnd::Kind::session_lost;
  end.error = "the session of its function was lost: gone";
  end_task(1, end);
  ASSERT_EQ(finish_.running(), "fail_many");
  finish_.answer(outcomes({{1, "stale"}}));
  turn();
  ASSERT_EQ(finish_.running(), "get_job");
  finish_.refuse_statement("PU005");
  turn();
  EXPECT_TRUE(capture_.has("unknown job=1"));
}

TEST_F(ExecutorTest, what_is_not_reported_is_told_as_completely_in_the_log) {
  given_worker(2);
  given_running({{.id = 1}});
  pass_time(5s);
  heartbeat_.answer(beat("alive", "{1}"));
  turn();
  end_task(1, killed());
  EXPECT_TRUE(
      capture_.has("revoked job=1 task=mail attempt=1 worker=7 outcome=revoked duration_ms="));
}

}  // namespace
}  // namespace pulse
