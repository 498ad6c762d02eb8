// What fails again and again is said now and then.
#include "base/postgres/repeats.hpp"

#include "worker_bench.hpp"

namespace pulse {
namespace {

TEST(Repeats, another_fault_is_news_and_so_is_one_that_was_over) {
  Repeats repeats;
  const TimePoint start{};
  EXPECT_EQ(repeats.level_of("a", start), LogLevel::warning);
  EXPECT_EQ(repeats.level_of("a", start + std::chrono::seconds(29)), LogLevel::debug);
  EXPECT_EQ(repeats.level_of("a", start + std::chrono::seconds(30)), LogLevel::warning);
  EXPECT_EQ(repeats.level_of("b", start + std::chrono::seconds(31)), LogLevel::warning);
  repeats.forget();
  EXPECT_EQ(repeats.level_of("b", start + std::chrono::seconds(32)), LogLevel::warning);
}

using RepeatsTest = WorkerBench;

TEST_F(RepeatsTest, a_beat_that_is_refused_is_said_each_half_minute) {
  given_worker();
  for (int beat = 0; beat < 8; ++beat) {
    while (heartbeat_.running() != "heartbeat") pass_time(1s);
    heartbeat_.refuse_statement("42501", "permission denied for function heartbeat");
    turn();
  }
  EXPECT_EQ(capture_.count("warning heartbeat_failed"), 2);
}

}  // namespace
}  // namespace pulse
