// Networks that are slow, or stall without an end.
#include "worker_bench.hpp"

namespace pulse {
namespace {

class SlowNetworkTest : public WorkerBench {
 protected:
  SlowNetworkTest() { are_outcomes_apart_ = true; }

  void report(std::int64_t job_id) {
    TaskProgress progress;
    progress.fraction = 0.5;
    progress.checkpoint = std::to_string(job_id);
    tasks_.at(job_id)->callbacks.on_progress(progress);
  }
  // Claims whose replies never come end, one after the other.
  void lose_claim() {
    ASSERT_EQ(claim_.running(), "claim");
    const int closes = claim_.closes();
    while (claim_.closes() == closes) pass_beating(1s);
    pass_beating(1s);
    claim_.accept();
    turn();
    ASSERT_EQ(claim_.running(), "held");
    claim_.answer(nothing());
    turn();
  }
};

TEST_F(SlowNetworkTest, a_long_reply_is_awaited_while_bytes_of_it_come) {
  given_worker();
  for (int i = 0; i < 10; ++i) {
    pass_beating(9s);
    claim_.move();
  }
  EXPECT_EQ(claim_.closes(), 0);
  claim_.answer(claimed({{.id = 1}}));
  turn();
  EXPECT_TRUE(is_running(1));
}

TEST_F(SlowNetworkTest, a_reply_that_stands_still_is_given_up) {
  given_worker();
  claim_.move();
  pass_beating(10s);
  EXPECT_EQ(claim_.closes(), 1);
}

TEST_F(SlowNetworkTest, a_reply_that_drips_is_given_up_in_the_end) {
  given_worker();
  for (int i = 0; i < 100 && claim_.closes() == 0; ++i) {
    pass_beating(9s);
    if (claim_.closes() == 0) claim_.move();
  }
  EXPECT_GT(claim_.closes(), 0);
}

TEST_F(SlowNetworkTest, the_next_claim_waits_longer_for_a_server_that_was_too_slow) {
  given_worker();
  lose_claim();
  EXPECT_EQ(claim_.running(), "claim");
  const int closes = claim_.closes();
  pass_beating(15s);
  EXPECT_EQ(claim_.closes(), closes);
  claim_.answer(claimed({{.id = 1}}));
  turn();
  EXPECT_TRUE(is_running(1));
}

TEST_F(SlowNetworkTest, no_two_lists_of_jobs_fall_into_one_claim) {
  given_worker();
  pass_time(5s);
  ASSERT_EQ(heartbeat_.running(), "heartbeat");
  EXPECT_EQ(heartbeat_.params(), (Params{"7", "{}"}));
  heartbeat_.answer(beat());
  claim_.move();
  pass_time(5s);
  ASSERT_EQ(heartbeat_.running(), "heartbeat");
  EXPECT_EQ(heartbeat_.params(), (Params{"7", std::nullopt})) << "its jobs would be given back";
  heartbeat_.answer(beat());
  claim_.answer(claimed({{.id = 1}}));
  pass_time(5s);
  EXPECT_EQ(heartbeat_.params(), (Params{"7", "{1}"}));
}

TEST_F(SlowNetworkTest, what_has_a_free_slot_when_a_late_reply_comes_is_started) {
  given_worker();
  pass_beating(9s);
  claim_.answer(claimed({{.id = 1}, {.id = 2}}));
  turn();
  EXPECT_EQ(started_, std::vector<std::int64_t>{1});
  EXPECT_EQ(finish_.running(), "") << "the other has just come";
  pass_beating(2500ms);
  EXPECT_EQ(finish_.running(), "release");
}

TEST_F(SlowNetworkTest, an_idle_worker_notices_a_stalled_connection_within_seconds) {
  given_worker();
  claim_.answer(nothing());
  turn();
  ASSERT_EQ(claim_.running(), "wait_for_job");
  pass_beating(15s);
  EXPECT_EQ(claim_.closes(), 1);
  EXPECT_TRUE(claim_.is_opening());
}

TEST_F(SlowNetworkTest, progress_of_many_travels_together) {
  are_outcomes_apart_ = false;
  given_worker(3);
  given_running({{.id = 1}, {.id = 2}, {.id = 3}});
  for (const std::int64_t job_id : {3, 1, 2}) report(job_id);
  turn();
  EXPECT_EQ(finish_.sent(),
            (std::vector<std::string>{"set_up", "progress", "progress", "progress"}));
  EXPECT_EQ(finish_.commit(), Commit::each);
}

TEST_F(SlowNetworkTest, those_who_report_often_do_not_keep_the_rest_from_it) {
  given_worker(3);
  given_running({{.id = 1}, {.id = 2}, {.id = 3}});
  std::vector<std::string> served;
  for (int i = 0; i < 6; ++i) {
    for (const std::int64_t job_id : {1, 2, 3}) report(job_id);
    turn();
    ASSERT_EQ(finish_.running(), "progress");
    served.push_back(finish_.param(0));
    finish_.answer(done());
  }
  EXPECT_EQ(served, (std::vector<std::string>{"1", "2", "3", "1", "2", "3"}));
}

TEST_F(SlowNetworkTest, an_outcome_does_not_overtake_the_checkpoint_that_is_under_way) {
  are_outcomes_apart_ = false;  // a claim would take it along
  given_worker();
  given_running({{.id = 1}});
  report(1);
  turn();
  ASSERT_EQ(finish_.running(), "progress");
  end_task(1, failure(1, "no"));
  ASSERT_EQ(claim_.running(), "claim");
  EXPECT_EQ(claim_.with_claim(), "");
  finish_.answer(done());
  turn();
  EXPECT_EQ(finish_.running(), "fail_many");
}

TEST_F(SlowNetworkTest, a_stop_does_not_depend_on_a_cancel_request_that_arrives) {
  given_worker();
  claim_.answer(nothing());
  turn();
  ASSERT_EQ(claim_.running(), "wait_for_job");
  worker_->stop();
  pass_time(600ms);
  ASSERT_EQ(heartbeat_.running(), "deregister_worker");
  heartbeat_.answer(done());
  EXPECT_EQ(exit_code_, ExitCode::drained);
}

TEST_F(SlowNetworkTest, a_stop_does_not_wait_for_a_claim_that_is_not_answered) {
  given_worker();
  worker_->stop();
  pass_beating(7s);
  ASSERT_EQ(heartbeat_.running(), "deregister_worker");
  heartbeat_.answer(done());
  EXPECT_EQ(exit_code_, ExitCode::drained);
}

TEST_F(SlowNetworkTest, what_that_claim_has_brought_goes_back_unstarted) {
  given_worker();
  worker_->stop();
  pass_beating(3s);
  claim_.accept();
  turn();
  ASSERT_EQ(claim_.running(), "held");
  claim_.answer(claimed({{.id = 1}}));
  turn();
  ASSERT_EQ(claim_.running(), "release");
  claim_.answer(outcomes({{1, "accepted"}}));
  turn();
  ASSERT_EQ(heartbeat_.running(), "deregister_worker");
}

TEST_F(SlowNetworkTest, once_ends_although_the_server_never_answers) {
  given_unregistered_worker(1, /*once=*/true);
  for (int i = 0; i < 61 && !exit_code_; ++i) {
    if (heartbeat_.is_opening()) heartbeat_.refuse("connection refused");
    if (claim_.is_opening()) claim_.refuse("connection refused");
    pass_time(1s);
    EXPECT_TRUE(i >= 58 || !exit_code_);
  }
  EXPECT_EQ(exit_code_, ExitCode::database_gone);
  EXPECT_TRUE(capture_.has("no answer of the server for 1min")) << capture_.text();
}

TEST_F(SlowNetworkTest, once_lets_its_tasks_outlive_an_outage) {
  given_worker(1, /*once=*/true);
  given_running({{.id = 1}});
  heartbeat_.lose();
  pass_time(10min);
  EXPECT_FALSE(was_terminated(1));
  EXPECT_FALSE(exit_code_);
}

}  // namespace
}  // namespace pulse
