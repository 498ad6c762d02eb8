// Behind a transaction pooler: no statement waits in the server, where it would keep one of the
// pooler's few sessions from everything else.
#include "worker_bench.hpp"

namespace pulse {
namespace {

class PoolerTest : public WorkerBench {
 protected:
  void given_pooled_worker(int concurrency = 1) {
    are_outcomes_apart_ = true;
    given_unregistered_worker(concurrency);
    for (FakeConnection* connection : {&heartbeat_, &claim_, &finish_}) {
      if (connection->is_opening()) connection->accept(FakeConnection::kBackendPid + 1);
    }
    turn();
    heartbeat_.answer(registered(kWorkerId));
    turn();
    ASSERT_EQ(heartbeat_.running(), "handler_tasks") << "and not attach_worker";
    heartbeat_.answer(handler_tasks());
    turn();
    ASSERT_EQ(claim_.running(), "claim");
  }
};

TEST_F(PoolerTest, when_nothing_is_ready_it_claims_again_after_the_poll_interval) {
  given_pooled_worker();
  claim_.answer(nothing());
  turn();
  EXPECT_EQ(claim_.running(), "");
  pass_beating(999ms);
  EXPECT_EQ(claim_.running(), "");
  pass_beating(1ms);
  ASSERT_EQ(claim_.running(), "claim");
  claim_.answer(nothing());
  pass_beating(1s);
  EXPECT_EQ(claim_.running(), "claim") << "and again";
}

TEST_F(PoolerTest, it_claims_at_once_when_an_outcome_may_have_let_a_job_go) {
  given_pooled_worker(2);
  given_running({{.id = 1, .queue_name = "serial"}});
  claim_.answer(nothing());
  turn();
  ASSERT_EQ(claim_.running(), "");
  end_task(1);
  ASSERT_EQ(finish_.running(), "complete_many");
  claim_.answer(nothing());
  finish_.answer(outcomes({{1, "accepted"}}));
  turn();
  EXPECT_EQ(claim_.running(), "claim");
}

TEST_F(PoolerTest, it_claims_at_once_what_it_serves_anew) {
  given_pooled_worker();
  claim_.answer(nothing());
  turn();
  served_.emplace_back("new");
  worker_->serve(served_);
  turn();
  ASSERT_EQ(claim_.running(), "claim");
  EXPECT_EQ(claim_.param(2), R"({"mail","new","report"})");
}

TEST_F(PoolerTest, it_stops_at_once) {
  given_pooled_worker();
  claim_.answer(nothing());
  turn();
  worker_->stop();
  turn();
  EXPECT_EQ(heartbeat_.running(), "deregister_worker");
  EXPECT_EQ(claim_.cancels(), 0);
}

TEST_F(PoolerTest, it_says_so_once) {
  given_pooled_worker();
  claim_.lose();
  pass_time(1s);
  claim_.accept(FakeConnection::kBackendPid + 1);
  const std::string log = capture_.text();
  EXPECT_NE(log.find(" pooled "), std::string::npos);
  EXPECT_EQ(log.find(" pooled "), log.rfind(" pooled "));
}

}  // namespace
}  // namespace pulse
