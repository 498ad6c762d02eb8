// How long tasks live without a sign of life of their worker, and who is blamed for their end.
#include "worker_bench.hpp"

namespace pulse {
namespace {

class SilenceTest : public WorkerBench {};

TEST_F(SilenceTest, a_job_that_says_kill_is_killed_while_the_database_is_out_of_reach) {
  given_worker();
  given_running({{.id = 1, .on_unreachable = "kill"}});
  const TimePoint last_good = clock_.now();
  heartbeat_.lose();
  pass_time(12750ms - 1ns);
  EXPECT_FALSE(was_terminated(1));
  pass_time(1ns);
  ASSERT_TRUE(was_terminated(1));
  EXPECT_EQ(tasks_.at(1)->terminations[0], 1s);
  EXPECT_EQ(tasks_.at(1)->alive_as_of, last_good) << "its minder counts from the last good beat";
  end_task(1, killed());
  EXPECT_EQ(finish_.running(), "") << "nothing is reported before a beat is answered";
  heartbeat_.accept();
  turn();
  heartbeat_.answer(done());  // attached
  turn();
  heartbeat_.answer(beat());
  turn();
  ASSERT_EQ(finish_.running(), "fail_late");
  EXPECT_NE(finish_.param(2).find("could not be reached"), std::string::npos);
  EXPECT_EQ(finish_.param(3), R"({"silence"})") << "no fault of the task";
  finish_.answer(outcomes({{1, "accepted"}}));
  EXPECT_TRUE(capture_.has("warning interrupted job=1"));
}

// This process was stopped, so the task's end says nothing about the task; neither does a limit
// that has passed meanwhile.
TEST_F(SilenceTest, what_its_minder_ends_for_silence_is_interrupted_however_it_ends) {
  given_worker(3);
  given_running({{.id = 1}, {.id = 2}, {.id = 3, .timeout = "30.000000"}});
  pass_beating(30s);
  ASSERT_TRUE(was_terminated(3));
  ExecutionEnd ended = killed();
  ExecutionEnd polite = success();
  ended.stopped_by = polite.stopped_by = ExecutionEnd::StoppedBy::silence;
  end_task(1, ended);
  ASSERT_EQ(finish_.running(), "fail_late");
  EXPECT_EQ(finish_.param(2),
            "{\"ended because its worker stood still for too long\nkilled by signal 9\"}");
  EXPECT_EQ(finish_.param(3), R"({"silence"})");
  finish_.answer(outcomes({{1, "accepted"}}));
  end_task(2, polite);
  ASSERT_EQ(finish_.running(), "fail_late") << "exit 0 at SIGTERM is no success";
  finish_.answer(outcomes({{2, "accepted"}}));
  end_task(3, ended);
  EXPECT_EQ(finish_.param(3), R"({"silence"})");
}

TEST_F(SilenceTest, a_task_lives_in_silence_as_long_as_its_claim_or_as_its_worker) {
  Registration registration;
  registration.sweep_threshold = 20s;
  Job job;
  EXPECT_EQ(task_silence_limit(job, registration), 20s);
  job.on_unreachable = OnUnreachable::kill;
  EXPECT_EQ(task_silence_limit(job, registration), 12750ms);
}

TEST_F(SilenceTest, good_beats_keep_a_job_that_says_kill) {
  given_worker();
  given_running({{.id = 1, .on_unreachable = "kill"}});
  pass_beating(5min);
  EXPECT_FALSE(was_terminated(1));
}

TEST_F(SilenceTest, minders_hear_from_the_loop_four_times_within_the_limit) {
  given_worker();
  given_running({{.id = 1}});
  const TimePoint started = clock_.now();
  heartbeat_.lose();
  // Until the next beat is overdue the minder counts from the last good one.
  pass_time(5s);
  EXPECT_EQ(tasks_.at(1)->alive_as_of, started);
  // Before the limit passes it hears that the loop lives.
  pass_time(7s);
  EXPECT_GT(tasks_.at(1)->alive_as_of, started);
}

TEST_F(SilenceTest, a_good_beat_reaches_the_minders_at_once) {
  given_worker();
  given_running({{.id = 1}});
  pass_time(5s);
  heartbeat_.answer(beat());
  EXPECT_EQ(tasks_.at(1)->alive_as_of, clock_.now());
}

}  // namespace
}  // namespace pulse
