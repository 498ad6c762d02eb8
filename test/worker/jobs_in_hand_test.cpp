// The jobs of one process: by number, and by database where two databases have a job of one number.
#include "task/process/jobs_in_hand.hpp"

#include <gtest/gtest.h>

#include "fake_clock.hpp"

namespace pulse {
namespace {

class QueueDouble final : public JobQueue {
 public:
  explicit QueueDouble(Timers& timers) : timers_(timers) {}
  Timers& timers() override { return timers_; }
  void ping_soon() override {}
  bool withdraw(ProcessExecution&) override { return false; }

 private:
  Timers& timers_;
};

class JobsInHandTest : public ::testing::Test {
 protected:
  std::unique_ptr<ProcessExecution> execution(std::int64_t id, const std::string& database) {
    HeldJob job;
    job.job.input.job_id = id;
    job.job.input.database = database;
    return std::make_unique<ProcessExecution>(queue_, job, "", std::chrono::seconds(1), TimePoint(),
                                              ExecutionCallbacks{});
  }

  FakeClock clock_;
  Timers timers_{clock_};
  QueueDouble queue_{timers_};
  JobsInHand jobs_{timers_};
};

TEST_F(JobsInHandTest, a_number_is_found_by_its_database) {
  const auto shop = execution(17, "shop");
  const auto eu = execution(17, "eu");
  jobs_.add(*shop);
  jobs_.add(*eu);
  EXPECT_EQ(jobs_.find(17, "shop"), shop.get());
  EXPECT_EQ(jobs_.find(17, "eu"), eu.get());
  EXPECT_EQ(jobs_.find(17, ""), nullptr);
  EXPECT_EQ(jobs_.find(18, "eu"), nullptr);
  EXPECT_TRUE(jobs_.forget(*shop));
  EXPECT_FALSE(jobs_.forget(*shop));
  EXPECT_EQ(jobs_.find(17, "shop"), nullptr);
  EXPECT_EQ(jobs_.find(17, "eu"), eu.get());
}

}  // namespace
}  // namespace pulse
