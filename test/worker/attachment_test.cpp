// What a worker asks of its session beside beats: to stand for it, and which functions it runs.
#include "worker_bench.hpp"

namespace pulse {
namespace {

class AttachmentTest : public WorkerBench {};

TEST_F(AttachmentTest, what_is_refused_for_now_is_asked_for_after_the_next_good_beat) {
  given_unregistered_worker();
  heartbeat_.accept();
  turn();
  heartbeat_.answer(registered(kWorkerId));
  turn();
  ASSERT_EQ(heartbeat_.running(), "attach_worker");
  heartbeat_.refuse_statement("53100", "No space left on device");
  turn();
  ASSERT_EQ(heartbeat_.running(), "handler_tasks");
  heartbeat_.refuse_statement("53100", "No space left on device");
  turn();
  pass_time(5s);
  ASSERT_EQ(heartbeat_.running(), "heartbeat");
  heartbeat_.answer(beat("alive"));
  turn();
  EXPECT_EQ(heartbeat_.running(), "attach_worker");
  heartbeat_.answer(done());
  turn();
  EXPECT_EQ(heartbeat_.running(), "handler_tasks");
}

}  // namespace
}  // namespace pulse
