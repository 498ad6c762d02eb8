// The times that follow from what the server said at registration.
#include "liveness/registration.hpp"

#include <gtest/gtest.h>

#include "server_answers.hpp"

namespace pulse {
namespace {

using namespace std::chrono_literals;

TEST(RegistrationTest, the_margin_holds_one_clamped_tick_and_the_time_to_kill) {
  const Registration registration = registration_of(registered(3, "5.000000")[0]);
  EXPECT_EQ(registration.worker_id, 3);
  EXPECT_EQ(registration.heartbeat_interval, 5s);
  EXPECT_EQ(registration.kill_allowance(), 1s);
  EXPECT_EQ(registration.margin(), 6250ms + 1s);
  EXPECT_EQ(registration.silence_limit(), 12750ms);
}

TEST(RegistrationTest, a_short_threshold_leaves_a_tenth_of_it_to_kill) {
  Registration registration;
  registration.sweep_threshold = 2s;
  registration.sweep_interval = 400ms;
  EXPECT_EQ(registration.kill_allowance(), 200ms);
  EXPECT_EQ(registration.silence_limit(), 2s - 500ms - 200ms);
}

TEST(RegistrationTest, where_sweeping_is_off_the_default_interval_stands_in) {
  const Registration registration = registration_of(registered(3, "-1.000000")[0]);
  EXPECT_FALSE(registration.sweep_interval);
  EXPECT_EQ(registration.margin(), 7250ms);
}

TEST(RegistrationTest, settings_that_leave_no_limit_get_half_of_the_threshold) {
  Registration registration;
  registration.sweep_threshold = 4s;
  registration.sweep_interval = 5s;
  EXPECT_EQ(registration.silence_limit(), 2s);
}

}  // namespace
}  // namespace pulse
