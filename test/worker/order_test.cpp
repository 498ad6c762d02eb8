// What operators order through the database, beside the signals of a supervisor.
#include "worker_bench.hpp"

namespace pulse {
namespace {

class OrderTest : public WorkerBench {};

TEST_F(OrderTest, an_operators_order_has_no_limit_until_a_signal_gives_one) {
  given_worker();
  given_running({{.id = 1}});
  pass_time(5s);
  heartbeat_.answer(beat("draining"));
  pass_beating(1h);
  EXPECT_FALSE(was_terminated(1));
  worker_->stop();
  pass_beating(25s);
  EXPECT_TRUE(was_terminated(1));
}

TEST_F(OrderTest, an_order_to_stop_limits_a_drain_that_had_no_limit) {
  given_worker();
  given_running({{.id = 1}});
  pass_time(5s);
  heartbeat_.answer(beat("draining"));
  pass_time(5s);
  heartbeat_.answer(beat("stopping"));
  pass_beating(25s - 1ns);
  EXPECT_FALSE(was_terminated(1));
  pass_beating(1ns);
  EXPECT_TRUE(was_terminated(1));
}

TEST_F(OrderTest, a_first_signal_leaves_what_runs_the_grace_that_an_order_began) {
  given_worker();
  given_running({{.id = 1}});
  pass_time(5s);
  heartbeat_.answer(beat("stopping"));
  pass_beating(10s);
  worker_->take_signal();
  EXPECT_FALSE(was_terminated(1));
  pass_beating(5s);
  worker_->take_signal();
  EXPECT_TRUE(was_terminated(1));
}

}  // namespace
}  // namespace pulse
