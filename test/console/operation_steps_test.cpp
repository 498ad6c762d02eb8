// How many jobs a step of an operation has.
#include "job/operation_steps.hpp"

#include <gtest/gtest.h>

namespace pulse::console {
namespace {

using std::chrono::milliseconds;

int jobs_after(int steps, milliseconds took) {
  StepSize size;
  for (int i = 0; i < steps; ++i) size.note_step(took);
  return size.jobs();
}

TEST(StepSizeTest, quick_steps_grow_to_a_thousand_jobs) {
  EXPECT_EQ(jobs_after(0, milliseconds(1)), 100);
  EXPECT_EQ(jobs_after(1, milliseconds(1)), 200);
  EXPECT_EQ(jobs_after(20, milliseconds(1)), 1000);
}

TEST(StepSizeTest, slow_steps_shrink_to_ten_jobs) {
  EXPECT_EQ(jobs_after(1, milliseconds(2000)), 50);
  EXPECT_EQ(jobs_after(20, milliseconds(2000)), 10);
}

TEST(StepSizeTest, steps_of_a_fair_time_stay_as_they_are) {
  EXPECT_EQ(jobs_after(20, milliseconds(200)), 100);
}

}  // namespace
}  // namespace pulse::console
