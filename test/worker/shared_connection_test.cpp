// What goes over the connection of the claims, and when outcomes have one of their own.
#include "worker_bench.hpp"

namespace pulse {
namespace {

class SharedConnectionTest : public WorkerBench {
 protected:
  // It runs a job, waits for more, and the third connection is refused.
  void given_refused_worker() {
    is_finish_to_be_had_ = false;
    given_worker(2);
    given_running({{.id = 1}});
    claim_.answer(nothing());
    turn();
    ASSERT_EQ(claim_.running(), "wait_for_job");
    ASSERT_TRUE(finish_.is_opening());
    finish_.refuse("sorry, too many clients already");
    turn();
  }
  // Time passes, and no job comes.
  void pass_waiting(Duration by) {
    for (Duration passed{}; passed < by; passed += 1s) {
      pass_beating(1s);
      while (claim_.running() == "claim" || claim_.running() == "wait_for_job") {
        const bool is_claim = claim_.running() == "claim";
        claim_.answer(nothing());
        turn();
        if (is_claim) break;
      }
    }
  }
  void cancel_wait() {
    ASSERT_EQ(claim_.running(), "wait_for_job");
    claim_.refuse_statement("57014", "canceling statement due to user request");
    turn();
  }
};

TEST_F(SharedConnectionTest, an_idle_worker_has_two) {
  given_worker();
  pass_waiting(1min);
  EXPECT_EQ(claim_.running(), "wait_for_job");
  EXPECT_EQ(finish_.opens(), 0);
}

TEST_F(SharedConnectionTest, the_third_is_there_before_the_first_job_reports) {
  is_finish_to_be_had_ = false;
  given_worker(2);
  given_running({{.id = 1}});
  EXPECT_TRUE(finish_.is_opening());
}

TEST_F(SharedConnectionTest, the_third_goes_after_ten_idle_seconds) {
  given_worker(2);
  given_running({{.id = 1}});
  claim_.answer(nothing());
  turn();
  pass_beating(5s);
  end_task(1);
  ASSERT_EQ(finish_.running(), "complete_many");
  finish_.answer(outcomes({{1, "accepted"}}));
  turn();
  pass_beating(9999ms);
  EXPECT_TRUE(finish_.is_open());
  pass_beating(1ms);
  EXPECT_FALSE(finish_.is_open());
  pass_beating(1min);
  EXPECT_EQ(finish_.opens(), 1) << "and does not come back by itself";
}

TEST_F(SharedConnectionTest, the_third_goes_from_a_worker_that_sweeps) {
  sweep_interval_ = "5.000000";
  given_worker(2);
  given_running({{.id = 1}});
  claim_.answer(nothing());
  turn();
  end_task(1);
  finish_.answer(outcomes({{1, "accepted"}}));
  turn();
  int sweeps = 0;
  for (int second = 0; second < 12; ++second) {
    pass_beating(1s);
    if (!finish_.is_open() || finish_.running() != "sweep") continue;
    ++sweeps;
    finish_.answer(swept(0));
    turn();
  }
  EXPECT_GE(sweeps, 2) << "which travel on it while it is there";
  EXPECT_FALSE(finish_.is_open());
  pass_beating(1min);
  EXPECT_EQ(finish_.opens(), 1) << "and do not open it";
}

TEST_F(SharedConnectionTest, it_stays_while_an_answer_is_awaited) {
  given_worker(2);
  given_running({{.id = 1}});
  end_task(1);
  const std::string running = finish_.running();
  ASSERT_EQ(running, "complete_many");
  pass_beating(14s);
  EXPECT_EQ(finish_.running(), running);
}

TEST_F(SharedConnectionTest, it_comes_back_for_an_outcome_that_finds_the_claims_waiting) {
  given_worker(2);
  given_running({{.id = 1}});
  pass_waiting(11s);
  ASSERT_FALSE(finish_.is_open());
  ASSERT_EQ(claim_.running(), "wait_for_job");
  end_task(1);
  EXPECT_EQ(finish_.running(), "complete_many");
  EXPECT_EQ(claim_.cancels(), 0);
}

TEST_F(SharedConnectionTest, a_sweep_goes_between_two_waits) {
  sweep_interval_ = "5.000000";
  random_ = 0.999999;
  given_worker();
  claim_.answer(nothing());
  turn();
  ASSERT_EQ(claim_.running(), "wait_for_job");
  EXPECT_LE(claim_.param(1), "5000 milliseconds");
  pass_beating(5s);
  EXPECT_EQ(claim_.running(), "wait_for_job") << "which is not cancelled for it";
  claim_.answer(nothing());
  turn();
  ASSERT_EQ(claim_.running(), "sweep");
  claim_.answer(swept(0));
  turn();
  EXPECT_EQ(claim_.running(), "claim");
  EXPECT_EQ(finish_.opens(), 0);
}

TEST_F(SharedConnectionTest, where_the_third_is_refused_outcomes_go_over_the_second) {
  given_refused_worker();
  EXPECT_EQ(claim_.cancels(), 1) << "the wait makes room";
  cancel_wait();
  ASSERT_EQ(claim_.running(), "claim");
  claim_.answer(nothing());
  turn();
  EXPECT_EQ(claim_.running(), "") << "no wait is in the way of what the job reports";
  end_task(1);
  EXPECT_EQ(claim_.with_claim() + claim_.running(), "complete_manyclaim");
}

TEST_F(SharedConnectionTest, what_no_claim_takes_along_goes_over_the_second_too) {
  given_refused_worker();
  cancel_wait();
  claim_.answer(nothing());
  turn();
  worker_->stop();
  end_task(1, failure(1, "no"));
  EXPECT_EQ(claim_.running(), "fail_many");
  claim_.answer(outcomes({{1, "accepted"}}));
  turn();
  EXPECT_EQ(heartbeat_.running(), "deregister_worker");
}

TEST_F(SharedConnectionTest, it_looks_for_jobs_while_it_cannot_wait) {
  given_refused_worker();
  cancel_wait();
  claim_.answer(nothing());
  turn();
  ASSERT_EQ(claim_.running(), "");
  pass_time(999ms);
  EXPECT_EQ(claim_.running(), "");
  pass_time(1ms);
  EXPECT_EQ(claim_.running(), "claim");
}

TEST_F(SharedConnectionTest, it_waits_again_when_it_holds_nothing) {
  given_refused_worker();
  cancel_wait();
  claim_.answer(nothing());
  turn();
  end_task(1);
  claim_.answer_all({outcomes({{1, "accepted"}}), nothing()});
  turn();
  EXPECT_EQ(claim_.running(), "wait_for_job");
}

TEST_F(SharedConnectionTest, it_waits_again_when_the_third_is_to_be_had) {
  given_refused_worker();
  cancel_wait();
  claim_.answer(nothing());
  is_finish_to_be_had_ = true;
  pass_beating(6s);
  EXPECT_TRUE(finish_.is_open()) << "a beat tries it again while something is held";
  if (claim_.running() == "claim") claim_.answer(nothing());
  pass_beating(1s);
  if (claim_.running() == "claim") claim_.answer(nothing());
  turn();
  EXPECT_EQ(claim_.running(), "wait_for_job");
}

}  // namespace
}  // namespace pulse
