// --once: what calls it waits for its end.
#include "worker_bench.hpp"

namespace pulse {
namespace {

class OnceTest : public WorkerBench {
 protected:
  OnceTest() { are_outcomes_apart_ = true; }
};

TEST_F(OnceTest, a_server_that_is_down_is_awaited_for_a_minute) {
  given_unregistered_worker(1, /*once=*/true);
  heartbeat_.refuse("could not translate host name");
  pass_time(1min - 1ms);
  EXPECT_FALSE(exit_code_);
  pass_time(1ms);
  EXPECT_EQ(exit_code_, ExitCode::database_gone);
  EXPECT_TRUE(capture_.has("no answer of the server for 1min"));
}

TEST_F(OnceTest, a_registered_worker_takes_as_long_as_it_likes) {
  given_worker(1, /*once=*/true);
  given_running({{.id = 1}});
  pass_beating(5min);
  EXPECT_FALSE(exit_code_);
}

TEST_F(OnceTest, a_machine_that_starts_no_task_is_awaited_for_a_minute) {
  refusals_[1] = {true, "too many open files"};
  given_worker(1, /*once=*/true);
  const TimePoint begun = clock_.now();
  while (!exit_code_ && clock_.now() < begun + 2min) {
    if (claim_.running() == "claim") claim_.answer(claimed({{.id = 1}}));
    turn();
    if (finish_.running() == "release") finish_.answer(outcomes({{1, "accepted"}}));
    pass_beating(100ms);
    if (heartbeat_.running() == "deregister_worker") heartbeat_.answer(done());
  }
  EXPECT_EQ(exit_code_, ExitCode::exhausted);
  EXPECT_GE(clock_.now(), begun + 1min);
  EXPECT_TRUE(capture_.has("no task could be started for 1min: too many open files"));
}

}  // namespace
}  // namespace pulse
