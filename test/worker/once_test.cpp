// --once: what calls it waits for its end.
#include "worker_bench.hpp"

namespace pulse {
namespace {

class OnceTest : public WorkerBench {
 protected:
  OnceTest() { are_outcomes_apart_ = true; }

  // The job is claimed again and again; where it begins, it ends at once, not started.
  void expect_end_after_a_minute(const std::string& reason) {
    ExecutionEnd not_started;
    not_started.kind = ExecutionEnd::Kind::not_started;
    not_started.error = reason;
    not_started.is_transient = true;
    const TimePoint begun = clock_.now();
    while (!exit_code_ && clock_.now() < begun + 2min) {
      if (claim_.running() == "claim") claim_.answer(claimed({{.id = 1}}));
      turn();
      if (is_running(1)) end_task(1, not_started);
      if (finish_.running() == "release") finish_.answer(outcomes({{1, "accepted"}}));
      pass_beating(100ms);
      if (heartbeat_.running() == "deregister_worker") heartbeat_.answer(done());
    }
    EXPECT_EQ(exit_code_, ExitCode::exhausted);
    EXPECT_GE(clock_.now(), begun + 1min);
    EXPECT_TRUE(capture_.has("no task could be started for 1min: " + reason));
  }
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
  expect_end_after_a_minute("too many open files");
}

TEST_F(OnceTest, so_is_one_that_starts_the_program_of_none) {
  given_worker(1, /*once=*/true);
  expect_end_after_a_minute("out of processes");
}

}  // namespace
}  // namespace pulse
