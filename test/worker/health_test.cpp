// When a process is said to be alive, and ready.
#include "observe/health.hpp"

#include <gtest/gtest.h>

#include "fake_clock.hpp"

namespace pulse {
namespace {

using namespace std::chrono_literals;

class HealthTest : public ::testing::Test {
 protected:
  void publish() { health_.publish(state_, clock_.now()); }
  std::string not_alive() const { return why_not_alive(health_.read(), clock_.now()); }
  std::string not_ready() const { return why_not_ready(health_.read(), clock_.now()); }

  void given_ready_worker() {
    state_.is_established = true;
    state_.worker_id = 7;
    state_.last_good = clock_.now();
    state_.silence_limit = 20s;
    publish();
    ASSERT_EQ(not_ready(), "");
  }

  FakeClock clock_;
  WorkerState state_;
  Health health_{clock_.now()};
};

TEST_F(HealthTest, who_starts_is_alive_but_not_for_ever) {
  EXPECT_EQ(not_alive(), "");
  EXPECT_EQ(not_ready(), "not registered");
  clock_.advance(11s);
  EXPECT_EQ(not_alive(), "the loop has been silent for 11s");
}

TEST_F(HealthTest, a_loop_that_turns_is_alive_and_not_ready_before_it_is_registered) {
  publish();
  EXPECT_EQ(not_alive(), "");
  EXPECT_EQ(not_ready(), "not registered");
}

TEST_F(HealthTest, a_loop_that_does_not_turn_is_neither) {
  given_ready_worker();
  clock_.advance(10s);
  EXPECT_EQ(not_alive(), "");
  clock_.advance(1ms);
  EXPECT_EQ(not_alive(), "the loop has been silent for 10001ms");
  EXPECT_EQ(not_ready(), not_alive());
  publish();
  EXPECT_EQ(not_alive(), "");
}

TEST_F(HealthTest, without_an_answered_heartbeat_it_is_alive_and_not_ready) {
  given_ready_worker();
  clock_.advance(20s);
  publish();
  EXPECT_EQ(not_alive(), "");
  EXPECT_EQ(not_ready(), "no heartbeat was answered for 20s");
  state_.last_good = clock_.now();
  publish();
  EXPECT_EQ(not_ready(), "");
}

TEST_F(HealthTest, who_drains_is_not_ready) {
  given_ready_worker();
  state_.is_draining = true;
  publish();
  EXPECT_EQ(not_alive(), "");
  EXPECT_EQ(not_ready(), "draining");
}

}  // namespace
}  // namespace pulse
