// Timers on a clock that is moved.
#include "base/loop/timers.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "base/loop/interval_timer.hpp"
#include "fake_clock.hpp"

namespace pulse {
namespace {

using namespace std::chrono_literals;

class TimersTest : public ::testing::Test {
 protected:
  FakeClock clock_;
  Timers timers_{clock_};
  std::vector<int> ran_;
};

TEST_F(TimersTest, run_in_the_order_of_their_time) {
  Timer late(timers_, [this] { ran_.push_back(2); });
  Timer early(timers_, [this] { ran_.push_back(1); });
  late.start_in(2s);
  early.start_in(1s);
  EXPECT_EQ(timers_.next_due(), clock_.now() + 1s);
  pass(clock_, timers_, 3s);
  EXPECT_EQ(ran_, (std::vector<int>{1, 2}));
  EXPECT_FALSE(timers_.next_due());
}

TEST_F(TimersTest, equal_times_run_in_the_order_they_were_started) {
  Timer second(timers_, [this] { ran_.push_back(2); });
  Timer first(timers_, [this] { ran_.push_back(1); });
  first.start_in(1s);
  second.start_in(1s);
  pass(clock_, timers_, 1s);
  EXPECT_EQ(ran_, (std::vector<int>{1, 2}));
}

TEST_F(TimersTest, nothing_runs_early) {
  Timer timer(timers_, [this] { ran_.push_back(1); });
  timer.start_in(1s);
  clock_.advance(1s - 1ns);
  timers_.run_due();
  EXPECT_TRUE(ran_.empty());
  EXPECT_TRUE(timer.is_running());
  clock_.advance(1ns);
  timers_.run_due();
  EXPECT_EQ(ran_.size(), 1U);
  EXPECT_FALSE(timer.is_running());
}

TEST_F(TimersTest, starting_again_moves_the_deadline) {
  Timer timer(timers_, [this] { ran_.push_back(1); });
  timer.start_in(1s);
  timer.start_in(5s);
  pass(clock_, timers_, 4s);
  EXPECT_TRUE(ran_.empty());
  pass(clock_, timers_, 1s);
  EXPECT_EQ(ran_.size(), 1U);
}

TEST_F(TimersTest, soon_never_moves_a_deadline_that_is_sooner) {
  Timer timer(timers_, [this] { ran_.push_back(1); });
  timer.start_in(1s);
  timer.start_soon();
  EXPECT_EQ(timer.due(), clock_.now());
  clock_.advance(1s);
  timer.start_soon();
  EXPECT_EQ(timer.due(), clock_.now() - 1s);
}

TEST_F(TimersTest, a_callback_may_stop_the_next_one_and_destroy_its_own) {
  auto own = std::unique_ptr<Timer>();
  Timer next(timers_, [this] { ran_.push_back(2); });
  own = std::make_unique<Timer>(timers_, [&] {
    ran_.push_back(1);
    next.stop();
    own.reset();
  });
  own->start_in(1s);
  next.start_in(1s);
  pass(clock_, timers_, 1s);
  EXPECT_EQ(ran_, (std::vector<int>{1}));
}

TEST_F(TimersTest, one_turn_ends_although_a_callback_starts_itself_anew) {
  Timer timer(timers_, [&] {
    ran_.push_back(1);
    timer.start_soon();
  });
  timer.start_soon();
  timers_.run_due();
  EXPECT_EQ(ran_.size(), 1U);
}

TEST_F(TimersTest, what_repeats_runs_until_it_is_destroyed) {
  {
    const IntervalTimer repeat(timers_, 1s, [this] { ran_.push_back(1); });
    pass(clock_, timers_, 3s);
    EXPECT_EQ(ran_.size(), 3U);
    EXPECT_EQ(timers_.next_due(), clock_.now() + 1s);
  }
  EXPECT_FALSE(timers_.next_due());
}

}  // namespace
}  // namespace pulse
