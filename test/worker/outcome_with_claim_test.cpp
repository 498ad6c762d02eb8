// Outcomes that travel with the next claim.
#include "worker_bench.hpp"

namespace pulse {
namespace {

class OutcomeWithClaimTest : public WorkerBench {
 protected:
  // One slot, whose job has just ended: its outcome and the next claim are due at once.
  void given_ended(const GivenJob& job = {}, const ExecutionEnd& end = success()) {
    given_worker(1);
    given_running({job});
    end_task(job.id, end);
  }
};

TEST_F(OutcomeWithClaimTest, outcomes_and_the_next_claim_share_a_round_trip_and_a_transaction) {
  given_ended();
  EXPECT_EQ(claim_.with_claim(), "complete_many");
  EXPECT_EQ(claim_.with_claim_params(), (Params{"{1}", "{100}", std::nullopt}));
  EXPECT_EQ(claim_.running(), "claim");
  EXPECT_EQ(claim_.commit(), Commit::together);
  EXPECT_EQ(finish_.running(), "");
}

TEST_F(OutcomeWithClaimTest, both_are_answered) {
  given_ended();
  claim_.answer_all({outcomes({{1, "accepted"}}), claimed({{.id = 2}})});
  turn();
  EXPECT_TRUE(capture_.has("completed job=1"));
  EXPECT_EQ(started_, (std::vector<std::int64_t>{1, 2}));
}

TEST_F(OutcomeWithClaimTest, what_ends_in_a_queue_is_committed_before_the_claim_looks) {
  given_ended({.queue_name = "invoices"});
  EXPECT_EQ(claim_.with_claim(), "complete_many");
  EXPECT_EQ(claim_.commit(), Commit::each);
}

TEST_F(OutcomeWithClaimTest, no_outcome_waits_for_a_claim) {
  given_worker(2);
  given_running({{.id = 1}});
  claim_.answer(nothing());
  turn();
  ASSERT_EQ(claim_.running(), "wait_for_job");
  end_task(1);
  EXPECT_EQ(finish_.running(), "complete_many");
}

TEST_F(OutcomeWithClaimTest, without_a_claim_to_send_outcomes_go_at_once) {
  given_worker(1);
  claim_.answer(claimed({{.id = 1}, {.id = 2}, {.id = 3}}));
  turn();
  clock_.advance(2s);  // so long a job is worth no claim ahead
  end_task(1);
  EXPECT_EQ(claim_.running(), "");
  EXPECT_EQ(finish_.running(), "complete_many");
}

TEST_F(OutcomeWithClaimTest, other_kinds_go_by_themselves_at_the_same_moment) {
  given_worker(2);
  claim_.answer(claimed({{.id = 1}, {.id = 2}}));
  turn();
  for (const std::int64_t id : {1, 2}) {
    const auto on_end = tasks_.at(id)->callbacks.on_end;
    on_end(id == 1 ? success() : failure(1, "no"));
  }
  turn();
  EXPECT_EQ(claim_.with_claim(), "complete_many");
  EXPECT_EQ(finish_.running(), "fail_many");
}

TEST_F(OutcomeWithClaimTest, what_raises_travels_alone) {
  ExecutionEnd end;
  end.kind = ExecutionEnd::Kind::snoozed;
  end.again_in = 5s;
  given_ended({}, end);
  EXPECT_EQ(finish_.running(), "snooze");
  EXPECT_EQ(claim_.running(), "claim");
  EXPECT_EQ(claim_.with_claim(), "");
}

TEST_F(OutcomeWithClaimTest, an_error_of_the_claim_loses_no_outcome) {
  given_ended();
  claim_.answer_all({RolledBack{}, SqlError{"PU008", "claims are off", "", "", ""}});
  turn();
  EXPECT_EQ(claim_.running(), "");
  ASSERT_EQ(finish_.running(), "complete_many");
  finish_.answer(outcomes({{1, "stale"}}));
  turn();
  EXPECT_TRUE(capture_.has("warning stale job=1")) << "it had not been sent before";
}

TEST_F(OutcomeWithClaimTest, a_refused_outcome_does_not_keep_the_claim_back) {
  given_ended({}, success("1"));
  claim_.answer_all({SqlError{"22021", "invalid byte sequence", "", "", ""}, RolledBack{}});
  turn();
  EXPECT_EQ(claim_.running(), "claim");
  EXPECT_EQ(claim_.with_claim(), "fail_many") << "what its outcome has become";
}

TEST_F(OutcomeWithClaimTest, what_is_refused_for_now_is_not_sent_with_every_claim) {
  given_ended();
  claim_.answer_all({SqlError{"57014", "no", "", "", ""}, RolledBack{}});
  turn();
  EXPECT_EQ(claim_.running(), "claim");
  EXPECT_EQ(claim_.with_claim(), "");
  EXPECT_EQ(finish_.running(), "");
  pass_time(100ms);
  EXPECT_EQ(finish_.running(), "complete_many");
}

TEST_F(OutcomeWithClaimTest, after_a_lost_reply_outcomes_are_sent_again_and_it_asks_what_is_held) {
  given_ended();
  claim_.lose();
  turn();
  ASSERT_EQ(finish_.running(), "complete_many");
  finish_.answer(outcomes({{1, "stale"}}));
  turn();
  EXPECT_EQ(finish_.running(), "get_job") << "the lost one may have been accepted";
  claim_.accept();
  turn();
  EXPECT_EQ(claim_.running(), "held");
}

TEST_F(OutcomeWithClaimTest, what_was_committed_before_the_rest_was_lost_is_known) {
  given_ended({.queue_name = "invoices"});
  claim_.answer_all({outcomes({{1, "accepted"}}), ConnectionLost{"gone"}});
  turn();
  EXPECT_TRUE(capture_.has("completed job=1"));
  EXPECT_EQ(finish_.running(), "");
  claim_.accept();
  turn();
  EXPECT_EQ(claim_.running(), "held");
}

TEST_F(OutcomeWithClaimTest, an_outcome_that_is_under_way_holds_up_the_end) {
  given_ended();
  worker_->stop();
  turn();
  EXPECT_NE(heartbeat_.running(), "deregister_worker");
  claim_.answer_all({outcomes({{1, "accepted"}}), nothing()});
  turn();
  EXPECT_EQ(heartbeat_.running(), "deregister_worker");
}

TEST_F(OutcomeWithClaimTest, after_a_pause_of_the_loop_neither_goes_before_a_beat) {
  given_worker(1);
  given_running({{.id = 1}});
  clock_.advance(13s);
  end_task(1);
  EXPECT_EQ(claim_.running(), "");
  EXPECT_EQ(finish_.running(), "");
  ASSERT_EQ(heartbeat_.running(), "heartbeat");
  heartbeat_.answer(beat("alive", "{1}"));
  turn();
  EXPECT_EQ(claim_.with_claim(), "") << "the outcome of a revoked claim";
  EXPECT_EQ(finish_.running(), "");
}

TEST_F(OutcomeWithClaimTest, behind_a_pooler_they_travel_apart) {
  are_outcomes_apart_ = true;
  given_unregistered_worker(1);
  heartbeat_.accept();
  claim_.accept(FakeConnection::kBackendPid + 1);
  turn();
  heartbeat_.answer(registered(kWorkerId));
  turn();
  heartbeat_.answer(done());
  turn();
  heartbeat_.answer(handler_tasks());
  turn();
  given_running({{.id = 1}});
  end_task(1);
  EXPECT_EQ(claim_.running(), "claim");
  EXPECT_EQ(claim_.with_claim(), "");
  EXPECT_EQ(finish_.running(), "complete_many");
}

}  // namespace
}  // namespace pulse
