// Tasks that wait in a queue of their own beside those that take slots of the executor.
#include "worker_bench.hpp"

namespace pulse {
namespace {

// The test says what it does; reports are its jobs.
class FakeQueue final : public TaskQueue {
 public:
  bool takes(const HeldJob& job) const override { return job.job.input.identifier == "report"; }
  std::size_t busy() const override { return busy_slots; }
  std::size_t reserved() const override { return reserved_slots; }
  std::size_t waiting() const override { return waiting_jobs; }
  std::size_t extra() const override { return extra_jobs; }
  void slot_freed() override { ++freed_slots; }
  void drain() override { is_drained = true; }

  std::size_t busy_slots = 0;
  std::size_t reserved_slots = 0;
  std::size_t waiting_jobs = 0;
  std::size_t extra_jobs = 0;
  int freed_slots = 0;
  bool is_drained = false;
};

class TaskQueueTest : public WorkerBench {
 protected:
  ~TaskQueueTest() override { worker_.reset(); }

  void given_queue(int concurrency = 1) {
    given_worker(concurrency);
    worker_->set_queue(queue_);
  }
  void hand_over(const std::vector<GivenJob>& jobs) {
    claim_.answer(claimed(jobs));
    turn();
  }

  FakeQueue queue_;
};

TEST_F(TaskQueueTest, its_jobs_are_started_whatever_runs) {
  given_queue();
  hand_over({{.id = 1}, {.id = 2, .identifier = "report"}, {.id = 3, .identifier = "report"}});
  EXPECT_TRUE(is_running(1));
  EXPECT_TRUE(is_running(2));
  EXPECT_TRUE(is_running(3));
}

TEST_F(TaskQueueTest, its_slots_are_missing_elsewhere) {
  given_queue(2);
  queue_.busy_slots = 2;
  hand_over({{.id = 1, .identifier = "report"}, {.id = 2}});
  EXPECT_FALSE(is_running(2));
  queue_.busy_slots = 1;
  end_task(1);
  EXPECT_TRUE(is_running(2));
}

TEST_F(TaskQueueTest, a_slot_that_it_waits_for_is_not_given_away) {
  given_queue();
  queue_.reserved_slots = 1;
  hand_over({{.id = 1, .identifier = "report"}, {.id = 2}});
  EXPECT_FALSE(is_running(2));
  queue_.reserved_slots = 0;
  end_task(1);
  EXPECT_TRUE(is_running(2));
}

TEST_F(TaskQueueTest, is_told_of_slots_that_others_leave) {
  given_queue();
  EXPECT_TRUE(queue_.has_free_slot());
  hand_over({{.id = 1}});
  EXPECT_FALSE(queue_.has_free_slot());
  EXPECT_EQ(queue_.freed_slots, 0);
  end_task(1);
  EXPECT_EQ(queue_.freed_slots, 1);
  EXPECT_TRUE(queue_.has_free_slot());
}

TEST_F(TaskQueueTest, jobs_that_it_can_run_beyond_its_slots_are_claimed) {
  given_queue();
  queue_.extra_jobs = 3;
  queue_.busy_slots = 1;
  hand_over({{.id = 1, .identifier = "report"}});
  ASSERT_EQ(claim_.running(), "claim");
  EXPECT_EQ(claim_.param(1), "3");
  EXPECT_EQ(claim_.param(3), "0") << "none that must start";
}

TEST_F(TaskQueueTest, jobs_that_wait_in_it_leave_no_slot_for_one_that_must_start) {
  given_queue(3);
  queue_.extra_jobs = 3;
  queue_.busy_slots = 1;
  queue_.waiting_jobs = 1;
  hand_over({{.id = 1, .identifier = "report"}, {.id = 2, .identifier = "report"}});
  ASSERT_EQ(claim_.running(), "claim");
  EXPECT_EQ(claim_.param(1), "4");
  EXPECT_EQ(claim_.param(3), "1");
}

TEST_F(TaskQueueTest, jobs_that_it_can_run_beyond_its_slots_are_waited_for) {
  given_queue();
  queue_.extra_jobs = 3;
  queue_.busy_slots = 1;
  hand_over({{.id = 1, .identifier = "report"}});
  hand_over({});
  EXPECT_EQ(claim_.running(), "wait_for_job");
}

TEST_F(TaskQueueTest, a_free_slot_ends_a_wait_that_was_not_for_it) {
  given_queue();
  queue_.extra_jobs = 3;
  queue_.busy_slots = 1;
  hand_over({{.id = 1, .identifier = "report"}});
  hand_over({});
  ASSERT_EQ(claim_.running(), "wait_for_job");
  EXPECT_EQ(claim_.cancels(), 0);
  queue_.busy_slots = 0;
  queue_.extra_jobs = 0;
  end_task(1);
  EXPECT_EQ(claim_.cancels(), 1);
  claim_.refuse_statement("57014", "canceling statement due to user request");
  turn();
  ASSERT_EQ(claim_.running(), "claim");
  EXPECT_EQ(claim_.param(3), "1");
  hand_over({});
  ASSERT_EQ(claim_.running(), "wait_for_job");
  worker_->serve({"report"});
  EXPECT_EQ(claim_.cancels(), 2);
}

TEST_F(TaskQueueTest, is_told_since_when_another_task_waits_for_a_slot) {
  given_queue();
  queue_.busy_slots = 1;
  EXPECT_FALSE(queue_.slot_awaited_since());
  const TimePoint arrived = clock_.now();
  hand_over({{.id = 1, .identifier = "report"}, {.id = 2}});
  ASSERT_FALSE(is_running(2));
  EXPECT_EQ(queue_.slot_awaited_since(), arrived);
  queue_.busy_slots = 0;
  end_task(1);
  ASSERT_TRUE(is_running(2));
  EXPECT_FALSE(queue_.slot_awaited_since());
}

TEST_F(TaskQueueTest, is_told_of_a_drain) {
  given_queue();
  worker_->stop();
  EXPECT_TRUE(queue_.is_drained);
}

}  // namespace
}  // namespace pulse
