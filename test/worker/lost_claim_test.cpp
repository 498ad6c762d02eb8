// What a claim has brought whose reply was lost.
#include "worker_bench.hpp"

namespace pulse {
namespace {

class LostClaimTest : public WorkerBench {
 protected:
  // The reply of the claim that is under way did not fit; what the server gave by it is `jobs`.
  void lose_for_memory(const std::vector<GivenJob>& jobs) {
    claim_.lose("out of memory for query result");
    turn();
    claim_.accept();
    turn();
    ASSERT_EQ(claim_.running(), "held");
    auto held = jobs;
    held.push_back({.id = 9});
    claim_.answer(claimed(held));
    turn();
  }
};

TEST_F(LostClaimTest, a_claim_whose_reply_was_lost_ends_an_earlier_one_of_its_job) {
  given_worker(2);
  given_running({{.id = 1, .token = 100}});
  claim_.lose();
  turn();
  claim_.accept();
  turn();
  ASSERT_EQ(claim_.running(), "held");
  claim_.answer(claimed({{.id = 1, .token = 200}}));
  turn();
  EXPECT_TRUE(was_terminated(1));
  ASSERT_EQ(finish_.running(), "release");
  EXPECT_EQ(finish_.params(), (Params{"{1}", "{200}"}));
}

TEST_F(LostClaimTest, after_a_lost_reply_it_asks_what_is_held_and_releases_the_rest) {
  given_worker(2);
  given_running({{.id = 1}});
  ASSERT_EQ(claim_.running(), "claim");
  claim_.lose();
  turn();
  claim_.accept();
  turn();
  ASSERT_EQ(claim_.running(), "held");
  EXPECT_EQ(claim_.param(0), "7");
  claim_.answer(claimed({{.id = 1}, {.id = 2, .token = 200}}));
  turn();
  ASSERT_EQ(finish_.running(), "release");
  EXPECT_EQ(finish_.params(), (Params{"{2}", "{200}"}));
  EXPECT_EQ(started_, (std::vector<std::int64_t>{1}));
  EXPECT_EQ(claim_.running(), "claim");
  EXPECT_TRUE(capture_.has("reconciled worker=7 held=2 released=1"));
}

TEST_F(LostClaimTest, jobs_that_came_with_one_too_large_go_back_and_are_claimed_one_by_one) {
  given_worker(5);
  given_running({{.id = 9}});
  ASSERT_EQ(claim_.param(1), "4");
  lose_for_memory({{.id = 1, .token = 100}, {.id = 2, .token = 200}});
  ASSERT_EQ(finish_.running(), "release");
  EXPECT_EQ(finish_.params(), (Params{"{1,2}", "{100,200}"}));
  finish_.answer(outcomes({{1, "accepted"}, {2, "accepted"}}));
  ASSERT_EQ(claim_.running(), "claim");
  EXPECT_EQ(claim_.param(1), "1");
  EXPECT_TRUE(capture_.has("claim_too_large asked=4 reason=\"out of memory for query result\""));
}

TEST_F(LostClaimTest, a_job_too_large_for_the_memory_alone_fails_and_waits_for_its_backoff) {
  given_worker(2);
  given_running({{.id = 9}});
  lose_for_memory({{.id = 1, .token = 100}});
  ASSERT_EQ(claim_.with_claim(), "fail_many");
  EXPECT_EQ(claim_.with_claim_params()[2], R"({"bench has no memory for this job's documents"})");
  EXPECT_EQ(claim_.with_claim_params()[3], "{t}") << "it may run again";
  claim_.answer_all({outcomes({{1, "accepted"}}), ConnectionLost{"gone"}});
  while (!claim_.is_opening()) pass_beating(10ms);
  claim_.accept();
  turn();
  claim_.answer(claimed({{.id = 2, .token = 200}}));
  turn();
  EXPECT_EQ(finish_.running(), "release") << "that one was lost for another reason";
}

// The server could not send it, so it gave nothing: the next claim is of the same job.
TEST_F(LostClaimTest, where_the_server_has_undone_the_claim_the_next_one_is_without_documents) {
  given_worker(2);
  given_running({{.id = 9}});
  lose_for_memory({});
  ASSERT_EQ(claim_.running(), "claim_bare");
  EXPECT_EQ(claim_.param(1), "1");
  claim_.answer(claimed({{.id = 1, .token = 100, .payload = "60000000"}}));
  turn();
  ASSERT_EQ(claim_.with_claim(), "fail_many");
  EXPECT_EQ(claim_.with_claim_params()[0], "{1}");
  EXPECT_EQ(started_, (std::vector<std::int64_t>{9}));
}

TEST_F(LostClaimTest, a_small_job_that_came_instead_goes_back) {
  given_worker(2);
  given_running({{.id = 9}});
  lose_for_memory({});
  claim_.answer(claimed({{.id = 2, .token = 200, .payload = "17"}}));
  turn();
  ASSERT_EQ(finish_.running(), "release");
  EXPECT_EQ(claim_.running(), "claim") << "and with documents the next time";
}

// Two lists in a row that lack a job give it back and cost an attempt; a release costs none.
TEST_F(LostClaimTest, until_it_has_asked_no_two_lists_lack_what_a_lost_claim_has_brought) {
  given_worker(2);
  given_running({{.id = 9}});
  claim_.lose();
  turn();
  pass_time(5s);
  EXPECT_EQ(heartbeat_.params(), (Params{"7", "{9}"})) << "as one that came while it claimed";
  heartbeat_.answer(beat("alive"));
  pass_time(5s);
  EXPECT_EQ(heartbeat_.params(), (Params{"7", std::nullopt}));
  heartbeat_.answer(beat("alive"));
  claim_.accept();
  turn();
  ASSERT_EQ(claim_.running(), "held");
  pass_time(5s);
  EXPECT_EQ(heartbeat_.params(), (Params{"7", std::nullopt})) << "nor while it asks";
  heartbeat_.answer(beat("alive"));
  claim_.answer(claimed({{.id = 1}}));
  turn();
  claim_.answer(nothing());
  turn();
  ASSERT_EQ(claim_.running(), "release") << "the connection for outcomes rests";
  pass_time(5s);
  EXPECT_EQ(heartbeat_.params(), (Params{"7", "{1,9}"}));
}

TEST_F(LostClaimTest, where_it_cannot_ask_for_long_the_lists_give_back_what_was_claimed) {
  given_worker(2);
  claim_.lose();
  turn();
  pass_beating(15s);
  pass_time(5s);
  EXPECT_EQ(heartbeat_.params(), (Params{"7", "{}"}));
  claim_.accept();
  turn();
  EXPECT_EQ(claim_.running(), "") << "the list that is under way may give back what it would hear";
  heartbeat_.answer(beat("alive"));
  turn();
  EXPECT_EQ(claim_.running(), "held");
}

TEST_F(LostClaimTest, what_was_interrupted_is_not_released_by_what_it_hears_of_a_lost_claim) {
  given_worker(2);
  given_running({{.id = 1}});
  claim_.lose();
  turn();
  worker_->stop();
  worker_->stop();
  turn();
  end_task(1, killed());
  claim_.accept();
  turn();
  ASSERT_EQ(claim_.running(), "held");
  claim_.answer(claimed({{.id = 1}, {.id = 2, .token = 200}}));
  turn();
  ASSERT_EQ(finish_.running(), "release");
  EXPECT_EQ(finish_.params(), (Params{"{2}", "{200}"})) << "the other one has run";
}

TEST_F(LostClaimTest, a_claim_has_one_end_whoever_comes_to_it) {
  HeldJobs held;
  Job job;
  job.input.job_id = 1;
  job.input.token = 100;
  const ClaimKey claim = job.key();
  EXPECT_FALSE(held.end(claim)) << "before it is held";
  held.add(job, kWorkerId, clock_.now());
  EXPECT_TRUE(held.end(claim));
  EXPECT_FALSE(held.end(claim)) << "it has ended";
  held.erase(claim);
  EXPECT_FALSE(held.end(claim)) << "and was answered for";
  job.input.token = 200;
  held.add(job, kWorkerId, clock_.now());
  held.move(*held.find(job.key()), HeldJob::State::revoked);
  EXPECT_FALSE(held.end(job.key())) << "a claim that is over has none";
}

}  // namespace
}  // namespace pulse
