// When and how many jobs are claimed.
#include "worker_bench.hpp"

namespace pulse {
namespace {

class ClaimerTest : public WorkerBench {
 protected:
  // Runs one job that takes `duration`, so that round trips and jobs have known times.
  void given_times(std::chrono::nanoseconds round_trip, std::chrono::nanoseconds duration) {
    clock_.advance(round_trip);
    given_running({{.id = 1000}});
    clock_.advance(duration);
    end_task(1000);
    finish_.answer(outcomes({{1000, "accepted"}}));
    turn();
  }
};

TEST_F(ClaimerTest, the_first_claim_asks_for_the_free_slots) {
  given_worker(/*concurrency=*/3);
  EXPECT_EQ(claim_.params(), (Params{"7", "3", std::nullopt, "3"}));
}

TEST_F(ClaimerTest, free_slots_are_filled_until_nothing_is_left) {
  given_worker(3);
  given_running({{.id = 1}});
  ASSERT_EQ(claim_.running(), "claim");
  EXPECT_EQ(claim_.param(1), "2");
  EXPECT_EQ(claim_.param(3), "2");
}

TEST_F(ClaimerTest, without_a_free_slot_nothing_is_claimed) {
  given_worker(1);
  given_running({{.id = 1}});
  EXPECT_EQ(claim_.running(), "");
  end_task(1);
  EXPECT_EQ(claim_.running(), "claim") << "its slot is free before its outcome is accepted";
}

TEST_F(ClaimerTest, when_nothing_is_ready_it_waits_in_the_server_and_claims_again) {
  given_worker();
  claim_.answer(nothing());
  turn();
  ASSERT_EQ(claim_.running(), "wait_for_job");
  EXPECT_EQ(claim_.params(), (Params{"7", "10000 milliseconds"}));
  pass_beating(3s);
  claim_.answer(nothing());
  turn();
  EXPECT_EQ(claim_.running(), "claim");
}

TEST_F(ClaimerTest, the_wait_is_shorter_while_something_is_held) {
  given_worker(2);
  given_running({{.id = 1}});
  claim_.answer(nothing());
  turn();
  ASSERT_EQ(claim_.running(), "wait_for_job");
  EXPECT_EQ(claim_.param(1), "5000 milliseconds");
}

TEST_F(ClaimerTest, a_slot_that_comes_free_does_not_disturb_a_wait) {
  given_worker(2);
  given_running({{.id = 1}});
  claim_.answer(nothing());
  turn();
  end_task(1);
  EXPECT_EQ(claim_.running(), "wait_for_job");
  EXPECT_EQ(claim_.cancels(), 0);
}

TEST_F(ClaimerTest, short_jobs_are_claimed_ahead) {
  given_worker(2);
  given_times(1ms, 1ms);
  // One slot more became free with the job; two jobs are used per round trip, twice that is held.
  ASSERT_EQ(claim_.running(), "claim");
  claim_.answer(claimed({{.id = 1}}));
  turn();
  ASSERT_EQ(claim_.running(), "claim");
  EXPECT_EQ(claim_.param(3), "1") << "to start";
  EXPECT_GT(std::stoi(claim_.param(1)), 1) << "and to hold ahead";
}

TEST_F(ClaimerTest, a_job_held_ahead_starts_in_the_next_free_slot_in_the_order_of_the_claim) {
  given_worker(1);
  claim_.answer(claimed({{.id = 9}, {.id = 5}, {.id = 7}}));
  turn();
  EXPECT_EQ(started_, (std::vector<std::int64_t>{9}));
  end_task(9);
  end_task(5);
  EXPECT_EQ(started_, (std::vector<std::int64_t>{9, 5, 7}));
}

TEST_F(ClaimerTest, what_is_held_ahead_too_long_is_released) {
  given_worker(1);
  claim_.answer(claimed({{.id = 1}, {.id = 2, .token = 200}}));
  pass_beating(2500ms - 1ns);
  EXPECT_EQ(finish_.running(), "");
  pass_beating(1ns);
  ASSERT_EQ(finish_.running(), "release");
  EXPECT_EQ(finish_.params(), (Params{"{2}", "{200}"}));
  EXPECT_EQ(started_, (std::vector<std::int64_t>{1}));
  finish_.answer(outcomes({{2, "accepted"}}));
  end_task(1);
  EXPECT_EQ(started_, (std::vector<std::int64_t>{1}));
}

TEST_F(ClaimerTest, a_job_that_is_given_anew_starts_when_its_earlier_claim_has_ended) {
  given_worker(2);
  given_running({{.id = 1, .token = 100}});
  claim_.answer(claimed({{.id = 1, .token = 200}, {.id = 2}}));
  turn();
  EXPECT_EQ(started_, (std::vector<std::int64_t>{1, 2})) << "two attempts of one job at once";
  ASSERT_TRUE(was_terminated(1));
  EXPECT_EQ(tasks_.at(1)->terminations[0], 0s);
  end_task(1, killed());
  EXPECT_EQ(started_, (std::vector<std::int64_t>{1, 2, 1}));
  EXPECT_FALSE(was_terminated(1));
  EXPECT_EQ(finish_.running(), "") << "the earlier claim reports nothing";
  end_task(1);
  ASSERT_EQ(claim_.with_claim(), "complete_many");
  EXPECT_EQ(claim_.with_claim_params(), (Params{"{1}", "{200}", std::nullopt}));
}

TEST_F(ClaimerTest, a_wake_up_that_brings_no_job_while_one_runs_asks_for_a_beat) {
  given_worker(2);
  given_running({{.id = 1}});
  claim_.answer(nothing());
  turn();
  ASSERT_EQ(claim_.running(), "wait_for_job");
  pass_time(1s);
  ASSERT_EQ(heartbeat_.running(), "") << "no beat is due";
  claim_.answer(done());
  turn();
  ASSERT_EQ(claim_.running(), "claim");
  EXPECT_EQ(heartbeat_.running(), "") << "perhaps it was for a job";
  claim_.answer(nothing());
  turn();
  EXPECT_EQ(heartbeat_.running(), "heartbeat");
}

TEST_F(ClaimerTest, what_ends_while_it_asks_what_is_held_is_not_released) {
  given_worker(2);
  given_running({{.id = 1}});
  claim_.lose();
  turn();
  claim_.accept();
  turn();
  ASSERT_EQ(claim_.running(), "held");
  end_task(1);
  finish_.answer(outcomes({{1, "accepted"}}));
  claim_.answer(claimed({{.id = 1}}));  // as the server saw it before
  turn();
  EXPECT_EQ(finish_.running(), "");
}

TEST_F(ClaimerTest, a_lost_wait_needs_no_question) {
  given_worker();
  claim_.answer(nothing());
  turn();
  claim_.lose();
  turn();
  claim_.accept();
  turn();
  EXPECT_EQ(claim_.running(), "claim");
}

TEST_F(ClaimerTest, who_cannot_beat_does_not_claim) {
  given_worker(2);
  given_running({{.id = 1}});
  claim_.answer(nothing());
  turn();
  heartbeat_.lose();
  pass_time(9s);  // the wait was for 5 s, and its answer is late
  clock_.advance(4s);
  claim_.answer(nothing());  // the wait is over
  turn();
  EXPECT_EQ(claim_.running(), "");
  EXPECT_TRUE(capture_.has("claim_skipped reason=\"no good heartbeat lately\""));
}

TEST_F(ClaimerTest, after_a_good_beat_it_claims_again) {
  given_worker();
  claim_.answer(nothing());
  turn();
  clock_.advance(13s);  // the process was stopped
  claim_.answer(nothing());
  turn();
  EXPECT_EQ(claim_.running(), "");
  ASSERT_EQ(heartbeat_.running(), "heartbeat");
  heartbeat_.answer(beat());
  turn();
  EXPECT_EQ(claim_.running(), "claim");
}

TEST_F(ClaimerTest, a_refused_claim_is_repeated_with_growing_pauses) {
  given_worker();
  claim_.refuse_statement("40001");
  turn();
  EXPECT_EQ(claim_.running(), "");
  pass_time(100ms);
  ASSERT_EQ(claim_.running(), "claim");
  claim_.refuse_statement("40001");
  pass_time(199ms);
  EXPECT_EQ(claim_.running(), "");
  pass_time(1ms);
  EXPECT_EQ(claim_.running(), "claim");
}

TEST_F(ClaimerTest, where_claims_are_off_it_asks_rarely) {
  given_worker();
  claim_.answer(SqlError{"PU008", "claims are off", "in a copy", "Adopt it.", ""});
  pass_beating(4999ms);
  EXPECT_EQ(claim_.running(), "");
  pass_beating(1ms);
  EXPECT_EQ(claim_.running(), "claim");
  EXPECT_TRUE(
      capture_.has("claim_skipped reason=\"claim: PU008 claims are off (in a copy): "
                   "Adopt it.\""));
}

TEST_F(ClaimerTest, waits_that_end_at_once_for_nothing_do_not_become_a_busy_loop) {
  given_worker();
  int claims = 0;
  const TimePoint end = clock_.now() + 1s;
  while (clock_.now() < end && claims < 1000) {
    if (claim_.running() == "claim") ++claims;
    if (claim_.is_busy()) claim_.answer(nothing());
    turn();
    answer_beat();
    if (!claim_.is_busy()) pass_time(10ms);
  }
  EXPECT_LT(claims, 20);
}

TEST_F(ClaimerTest, a_machine_that_cannot_start_tasks_gets_no_more_for_a_while) {
  refusals_[1] = {true, "out of processes"};
  given_worker(2);
  claim_.answer(claimed({{.id = 1}}));
  turn();
  ASSERT_EQ(finish_.running(), "release");
  EXPECT_EQ(claim_.running(), "");
  pass_time(999ms);
  EXPECT_EQ(claim_.running(), "");
  pass_time(1ms);
  EXPECT_EQ(claim_.running(), "claim");
}

TEST_F(ClaimerTest, new_tasks_end_the_wait_and_are_named_in_the_claims_that_follow) {
  given_worker();
  claim_.answer(nothing());
  turn();
  ASSERT_EQ(claim_.running(), "wait_for_job");
  worker_->serve({"mail", "new"});
  EXPECT_EQ(claim_.cancels(), 1);
  claim_.refuse_statement("57014", "canceling statement due to user request");
  turn();
  ASSERT_EQ(claim_.running(), "claim");
  EXPECT_EQ(claim_.param(2), R"({"mail","new"})");
  pass_time(1s);
  EXPECT_EQ(claim_.cancels(), 1);
}

TEST_F(ClaimerTest, a_cancellation_that_comes_after_the_wait_costs_the_claim_no_pause) {
  given_worker();
  claim_.answer(nothing());
  turn();
  worker_->serve({"mail", "new"});
  claim_.answer(nothing());  // the wait had ended
  turn();
  ASSERT_EQ(claim_.running(), "claim");
  claim_.refuse_statement("57014", "canceling statement due to user request");
  turn();
  ASSERT_EQ(claim_.running(), "claim") << "it is sent again at once";
  claim_.refuse_statement("57014", "canceling statement due to user request");
  turn();
  EXPECT_EQ(claim_.running(), "") << "who cancels another one is not the worker";
  EXPECT_EQ(capture_.count("claim_skipped"), 1);
}

TEST_F(ClaimerTest, once_means_until_nothing_is_ready) {
  is_finish_to_be_had_ = false;
  given_worker(2, /*once=*/true);
  given_running({{.id = 1}});
  claim_.answer(nothing());
  turn();
  EXPECT_EQ(claim_.running(), "") << "it must not wait for jobs that come later";
  end_task(1);
  ASSERT_TRUE(finish_.is_opening()) << "opened when there is something to report";
}

TEST_F(ClaimerTest, once_ends_where_claims_are_refused_until_an_operator_acts) {
  given_worker(1, /*once=*/true);
  claim_.answer(SqlError{"PU008", "not adopted", "", "SELECT pulse.adopt_installation().", ""});
  turn();
  heartbeat_.answer(done());
  EXPECT_EQ(exit_code_, ExitCode::configuration);
  EXPECT_TRUE(capture_.has("refused reason=\"claim: PU008 not adopted: SELECT pulse.adopt_"));
}

TEST_F(ClaimerTest, once_goes_on_after_a_refusal_that_passes) {
  given_worker(1, /*once=*/true);
  claim_.refuse_statement("40001");
  pass_beating(1s);
  EXPECT_FALSE(exit_code_);
  EXPECT_EQ(claim_.running(), "claim");
}

TEST_F(ClaimerTest, once_asks_again_after_the_last_job_because_it_may_have_added_one) {
  given_worker(1, /*once=*/true);
  claim_.answer(claimed({{.id = 1}}));
  finish_.accept();
  turn();
  end_task(1);
  ASSERT_EQ(claim_.running(), "claim");  // asked while job 1 was not yet reported
  claim_.answer_all({outcomes({{1, "accepted"}}), nothing()});
  turn();
  ASSERT_EQ(claim_.running(), "claim");
  EXPECT_FALSE(exit_code_);
  claim_.answer(nothing());
  turn();
  ASSERT_EQ(heartbeat_.running(), "deregister_worker");
  heartbeat_.answer(done());
  EXPECT_EQ(exit_code_, ExitCode::drained);
}

TEST_F(ClaimerTest, once_asks_again_when_the_last_job_ends_during_an_empty_claim) {
  given_worker(2, /*once=*/true);
  claim_.answer(claimed({{.id = 1}}));
  finish_.accept();
  turn();
  ASSERT_EQ(claim_.running(), "claim");  // asked while job 1 ran
  end_task(1);
  finish_.answer(outcomes({{1, "accepted"}}));
  turn();
  claim_.answer(nothing());
  turn();
  ASSERT_EQ(claim_.running(), "claim") << "nobody else would ask";
  claim_.answer(nothing());
  turn();
  EXPECT_EQ(heartbeat_.running(), "deregister_worker");
}

TEST_F(ClaimerTest, once_on_an_empty_queue_claims_once_and_opens_no_third_connection) {
  given_worker(1, /*once=*/true);
  claim_.answer(nothing());
  turn();
  ASSERT_EQ(heartbeat_.running(), "deregister_worker");
  heartbeat_.answer(done());
  EXPECT_EQ(exit_code_, ExitCode::drained);
  EXPECT_EQ(finish_.opens(), 0);
}

}  // namespace
}  // namespace pulse
