// The real loop: timers on the real clock, and calls from other threads.
#include "base/loop/event_loop.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <thread>

#include "base/loop/signals.hpp"

namespace pulse {
namespace {

using namespace std::chrono_literals;

class EventLoopTest : public ::testing::Test {
 protected:
  EventLoopTest() : limit_(loop_.timers(), [this] { loop_.stop(); }) { limit_.start_in(30s); }

  SystemClock clock_;
  EventLoop loop_{clock_};
  Timer limit_;  // so that a failing test ends
};

TEST_F(EventLoopTest, a_timer_runs_not_before_its_time) {
  const TimePoint start = clock_.now();
  TimePoint ran{};
  Timer timer(loop_.timers(), [&] {
    ran = clock_.now();
    loop_.stop();
  });
  timer.start_in(20ms);
  loop_.run();
  EXPECT_GE(ran - start, 20ms);
  EXPECT_LT(ran - start, 20s);
}

TEST_F(EventLoopTest, what_is_posted_runs_on_the_loops_thread) {
  std::thread::id ran;
  std::thread other([&] {
    loop_.post([&] {
      ran = std::this_thread::get_id();
      loop_.stop();
    });
  });
  loop_.run();
  other.join();
  EXPECT_EQ(ran, std::this_thread::get_id());
}

TEST_F(EventLoopTest, soon_is_after_everything_that_was_ready) {
  std::vector<int> order;
  Timer soon(loop_.timers(), [&] {
    order.push_back(3);
    loop_.stop();
  });
  loop_.post([&] {
    order.push_back(1);
    soon.start_soon();
  });
  loop_.post([&] { order.push_back(2); });
  loop_.run();
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
}

TEST_F(EventLoopTest, a_turn_ends_after_all_that_happens_in_it) {
  std::vector<int> order;
  Timer soon(loop_.timers(), [&] {
    order.push_back(2);
    loop_.stop();
  });
  loop_.post([&] {
    order.push_back(1);
    soon.start_soon();
  });
  loop_.on_iteration = [&] {
    if (!order.empty()) order.push_back(3);
  };
  loop_.run();
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
}

TEST_F(EventLoopTest, a_signal_is_a_call) {
  int calls = 0;
  Signals signals(loop_);
  signals.on(SIGUSR1, [&] {
    if (++calls == 2) loop_.stop();
    std::raise(SIGUSR1);
  });
  std::raise(SIGUSR1);
  loop_.run();
  EXPECT_EQ(calls, 2);
}

}  // namespace
}  // namespace pulse
