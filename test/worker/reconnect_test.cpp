// When a lost connection is opened again.
#include "base/postgres/reconnect.hpp"

#include <gtest/gtest.h>

namespace pulse {
namespace {

using namespace std::chrono_literals;

TEST(ReconnectTest, the_first_time_at_once) {
  Reconnect reconnect([] { return 0.999; }, 5s);
  EXPECT_EQ(reconnect.next_delay(1h), 0ms);
}

TEST(ReconnectTest, then_a_random_part_of_a_bound_that_doubles_up_to_the_cap) {
  Reconnect reconnect([] { return 0.5; }, 1s);
  EXPECT_EQ(reconnect.next_delay(0ms), 0ms);
  EXPECT_EQ(reconnect.next_delay(0ms), 50ms);
  EXPECT_EQ(reconnect.next_delay(0ms), 100ms);
  EXPECT_EQ(reconnect.next_delay(0ms), 200ms);
  EXPECT_EQ(reconnect.next_delay(0ms), 400ms);
  EXPECT_EQ(reconnect.next_delay(0ms), 500ms);
  EXPECT_EQ(reconnect.next_delay(0ms), 500ms);
}

TEST(ReconnectTest, the_jitter_is_full) {
  double random = 0;
  Reconnect reconnect([&] { return random; }, 5s);
  (void)reconnect.next_delay(0ms);
  EXPECT_EQ(reconnect.next_delay(0ms), 0ms);
  random = 0.999;
  EXPECT_GT(reconnect.next_delay(0ms), 190ms);
}

TEST(ReconnectTest, never_beyond_the_cap_however_long_it_lasts) {
  Reconnect reconnect([] { return 0.999999; }, 3s);
  for (int i = 0; i < 1000; ++i) EXPECT_LE(reconnect.next_delay(0ms), 3s);
  reconnect.set_cap(200ms);
  EXPECT_LE(reconnect.next_delay(0ms), 200ms);
}

TEST(ReconnectTest, a_connection_that_lived_ends_the_series) {
  Reconnect reconnect([] { return 0.5; }, 5s);
  for (int i = 0; i < 5; ++i) (void)reconnect.next_delay(0ms);
  EXPECT_EQ(reconnect.next_delay(1s), 0ms);
}

TEST(ReconnectTest, one_that_is_killed_at_once_does_not) {
  Reconnect reconnect([] { return 0.5; }, 5s);
  EXPECT_EQ(reconnect.next_delay(10ms), 0ms);
  EXPECT_EQ(reconnect.next_delay(10ms), 50ms);
  EXPECT_EQ(reconnect.next_delay(10ms), 100ms);
}

}  // namespace
}  // namespace pulse
