// Limits that change while a job runs.
#include "worker_bench.hpp"

namespace pulse {
namespace {

class TaskLimitsTest : public WorkerBench {
 protected:
  // A job that began with this timeout, after as many seconds.
  void given_running_for(Duration elapsed, const std::string& timeout) {
    given_worker();
    given_running({{.id = 1, .timeout = timeout}});
    pass_beating(elapsed);
  }
  // The server tells that tasks have changed; whether the worker asks for limits.
  bool asks_for_limits() {
    heartbeat_.notice("PU102");
    turn();
    answer_handlers();
    return heartbeat_.running() == "task_limits";
  }
  void answer_limits(const QueryResult::Cell& timeout, const QueryResult::Cell& stall_timeout,
                     const std::string& identifier = "mail") {
    heartbeat_.answer(QueryResult({"identifier", "timeout", "stall_timeout", "on_unreachable"},
                                  {identifier, timeout, stall_timeout, "continue"}));
    turn();
    answer_handlers();
  }
  // Which are asked for too.
  void answer_handlers() {
    if (heartbeat_.running() != "handler_tasks") return;
    heartbeat_.answer(handler_tasks());
    turn();
  }
};

TEST_F(TaskLimitsTest, a_timeout_that_is_raised_reaches_a_job_that_runs) {
  given_running_for(8s, "10.0");
  ASSERT_TRUE(asks_for_limits());
  EXPECT_EQ(heartbeat_.param(0), "7");
  EXPECT_EQ(heartbeat_.param(1), R"({"mail"})");
  answer_limits("30.0", std::nullopt);
  pass_beating(21s);
  EXPECT_FALSE(was_terminated(1));
  pass_beating(1s);
  EXPECT_TRUE(was_terminated(1));
  end_task(1, killed());
  EXPECT_EQ(finish_.running(), "fail_late");
  EXPECT_NE(finish_.param(2).find("timed out after 30s"), std::string::npos) << finish_.param(2);
}

TEST_F(TaskLimitsTest, one_that_is_lowered_ends_the_job_with_its_whole_grace) {
  given_running_for(20s, "60.0");
  ASSERT_TRUE(asks_for_limits());
  answer_limits("10.0", std::nullopt);
  pass_time(0s);
  ASSERT_TRUE(was_terminated(1));
  EXPECT_EQ(tasks_.at(1)->terminations.front(), kTermGrace);
}

TEST_F(TaskLimitsTest, one_that_is_taken_away_ends_nothing) {
  given_running_for(8s, "10.0");
  ASSERT_TRUE(asks_for_limits());
  answer_limits(std::nullopt, std::nullopt);
  pass_beating(1min);
  EXPECT_FALSE(was_terminated(1));
}

TEST_F(TaskLimitsTest, a_stall_timeout_is_heard_of_too) {
  given_running_for(8s, "60.0");
  ASSERT_TRUE(asks_for_limits());
  answer_limits("60.0", "9.0");
  pass_beating(2s);
  EXPECT_TRUE(was_terminated(1));
}

TEST_F(TaskLimitsTest, other_tasks_keep_theirs) {
  given_running_for(8s, "10.0");
  ASSERT_TRUE(asks_for_limits());
  answer_limits("30.0", std::nullopt, "report");
  pass_beating(2s);
  EXPECT_TRUE(was_terminated(1));
}

TEST_F(TaskLimitsTest, without_a_job_nothing_is_asked) {
  given_worker();
  EXPECT_FALSE(asks_for_limits());
}

TEST_F(TaskLimitsTest, a_refusal_is_told_and_leaves_limits_as_they_are) {
  given_running_for(8s, "10.0");
  ASSERT_TRUE(asks_for_limits());
  heartbeat_.refuse_statement("42501", "permission denied for function task_limits");
  turn();
  answer_handlers();
  EXPECT_TRUE(capture_.has("limits_failed")) << capture_.text();
  pass_beating(2s);
  EXPECT_TRUE(was_terminated(1));
}

TEST_F(TaskLimitsTest, what_was_not_answered_is_asked_again) {
  given_running_for(8s, "10.0");
  ASSERT_TRUE(asks_for_limits());
  heartbeat_.lose("cut");
  turn();
  pass_time(1s);
  ASSERT_TRUE(heartbeat_.is_opening());
  heartbeat_.accept();
  turn();
  for (int i = 0; i < 5 && heartbeat_.running() != "task_limits"; ++i) {
    if (heartbeat_.running() == "attach_worker") heartbeat_.answer(done());
    if (heartbeat_.running() == "handler_tasks") heartbeat_.answer(handler_tasks());
    if (heartbeat_.running() == "heartbeat") heartbeat_.answer(beat());
    turn();
  }
  EXPECT_EQ(heartbeat_.running(), "task_limits");
}

}  // namespace
}  // namespace pulse
