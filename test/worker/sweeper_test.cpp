// When this worker looks for the lost.
#include "worker_bench.hpp"

namespace pulse {
namespace {

class SweeperTest : public WorkerBench {
 protected:
  SweeperTest() {
    sweep_interval_ = "5.000000";
    are_outcomes_apart_ = true;
  }

  // It has something to report sooner or later, so that sweeps have a connection beside the claims.
  void given_busy_worker() {
    given_worker(2);
    given_running({{.id = 99}});
  }
  // Which keeps that connection for another ten seconds.
  void given_report() {
    tasks_.at(99)->callbacks.on_progress({.fraction = 0.5});
    turn();
    ASSERT_EQ(finish_.running(), "progress");
    finish_.answer(done());
    turn();
  }
  // Which one follows a wait and a claim that brought nothing.
  std::string statement_after_the_wait() {
    while (claim_.running() == "claim" || claim_.running() == "wait_for_job") {
      const bool is_claim = claim_.running() == "claim";
      claim_.answer(nothing());
      turn();
      if (is_claim) break;
    }
    return claim_.running();
  }
  // Time up to the first sweep, beating on the way.
  std::chrono::nanoseconds until_sweep() {
    const TimePoint start = clock_.now();
    while (finish_.running() != "sweep" && clock_.now() - start < 1min) pass_beating(1ms);
    return clock_.now() - start;
  }
};

TEST_F(SweeperTest, sweeps_come_a_little_sooner_than_the_interval) {
  random_ = 0.0;
  given_busy_worker();
  EXPECT_EQ(until_sweep(), 4s);
  random_ = 0.999999;
  finish_.answer(swept(0));
  EXPECT_EQ(until_sweep(), 4s) << "the next one was drawn when this one was sent";
  finish_.answer(swept(0));
  given_report();
  const auto next = until_sweep();
  EXPECT_GT(next, 4900ms);
  EXPECT_LE(next, 5s);
}

TEST_F(SweeperTest, a_sweep_never_waits_on_the_connection_of_the_heartbeat) {
  given_busy_worker();
  (void)until_sweep();
  pass_time(1s);  // the sweep is slow
  EXPECT_EQ(finish_.running(), "sweep");
  EXPECT_EQ(heartbeat_.running(), "heartbeat");
}

TEST_F(SweeperTest, the_server_may_ask_for_one_at_once) {
  given_busy_worker();
  claim_.answer(nothing());
  turn();
  ASSERT_EQ(claim_.running(), "wait_for_job");
  claim_.notice("00000");
  turn();
  EXPECT_EQ(finish_.running(), "");
  claim_.notice("PU100");
  turn();
  EXPECT_EQ(finish_.running(), "sweep");
}

TEST_F(SweeperTest, the_interval_is_left_to_the_background_worker_while_that_sweeps) {
  background_sweeps_ = "on";
  given_busy_worker();
  (void)until_sweep();  // no beat has told it yet
  finish_.answer(swept(0));
  pass_beating(1s);
  EXPECT_EQ(statement_after_the_wait(), "wait_for_job");
  for (int i = 0; i < 12; ++i) {
    pass_beating(5s);
    EXPECT_EQ(finish_.running(), "");
    EXPECT_EQ(statement_after_the_wait(), "wait_for_job") << "it would have swept a dozen times";
  }
  claim_.notice("PU100");
  EXPECT_EQ(statement_after_the_wait(), "sweep") << "what it is asked for it does";
  claim_.answer(swept(0));
  turn();
  background_sweeps_ = "off";
  std::string next = statement_after_the_wait();
  for (int i = 0; i < 2 && next == "wait_for_job"; ++i) {
    pass_beating(5s);  // a beat to hear of it, and an interval
    next = statement_after_the_wait();
  }
  EXPECT_EQ(next, "sweep");
}

TEST_F(SweeperTest, a_library_that_says_nothing_sweeps_for_nobody) {
  background_sweeps_ = std::nullopt;
  given_busy_worker();
  EXPECT_LE(until_sweep(), 5s);
}

TEST_F(SweeperTest, a_sweep_is_repeated_until_it_finds_nothing) {
  given_busy_worker();
  claim_.notice("PU100");
  turn();
  finish_.answer(swept(1000));
  turn();
  ASSERT_EQ(finish_.running(), "sweep");
  finish_.answer(swept(1));
  turn();
  EXPECT_TRUE(capture_.has("recovered workers_lost=0 jobs=1"));
  ASSERT_EQ(finish_.running(), "sweep") << "its time may have been up";
  finish_.answer(swept(0, 1));
  turn();
  ASSERT_EQ(finish_.running(), "sweep") << "the jobs of a lost worker are left";
  finish_.answer(swept(0));
  turn();
  EXPECT_EQ(finish_.running(), "");
}

TEST_F(SweeperTest, outcomes_go_between_repeated_sweeps) {
  given_busy_worker();
  given_running({{.id = 1}});
  claim_.notice("PU100");
  turn();
  end_task(1);
  finish_.answer(swept(1000));
  turn();
  EXPECT_EQ(finish_.running(), "complete_many");
  finish_.answer(outcomes({{1, "accepted"}}));
  turn();
  EXPECT_EQ(finish_.running(), "sweep");
}

TEST_F(SweeperTest, where_sweeping_is_off_nobody_sweeps) {
  sweep_interval_ = "-1.000000";
  given_busy_worker();
  claim_.notice("PU100");
  pass_beating(1min);
  EXPECT_EQ(finish_.running(), "");
}

TEST_F(SweeperTest, a_failed_sweep_is_said_and_tried_again) {
  given_busy_worker();
  (void)until_sweep();
  finish_.refuse_statement("57014", "canceling statement");
  EXPECT_LE(until_sweep(), 5s);
  EXPECT_TRUE(capture_.has("sweep_failed sqlstate=57014"));
}

TEST_F(SweeperTest, what_fails_again_and_again_is_said_each_half_minute) {
  given_busy_worker();
  for (const TimePoint start = clock_.now(); clock_.now() - start < 40s;) {
    (void)until_sweep();
    finish_.refuse_statement("42501", "permission denied for function sweep");
    given_report();
  }
  EXPECT_EQ(capture_.count("warning sweep_failed"), 2);
}

}  // namespace
}  // namespace pulse
