// Durations on the command line.
#include "base/loop/duration.hpp"

#include <gtest/gtest.h>

namespace pulse {
namespace {

using namespace std::chrono_literals;

TEST(DurationText, every_unit_is_read) {
  EXPECT_EQ(parse_duration("500ms"), 500ms);
  EXPECT_EQ(parse_duration("5s"), 5s);
  EXPECT_EQ(parse_duration("1min"), 1min);
  EXPECT_EQ(parse_duration("2h"), 2h);
  EXPECT_EQ(parse_duration("20d"), 20 * 24h);
  EXPECT_EQ(parse_duration("0s"), 0s);
  EXPECT_EQ(parse_duration("1.5s"), 1500ms);
}

TEST(DurationText, what_leaves_the_reader_guessing_is_no_duration) {
  for (const char* text : {"", "5", "s", "5 s", " 5s", "5s ", "-5s", "5m", "5sec", "1e3s", "infs",
                           "nans", "0x5s", "5s5s", "99999999999999h", "1w"}) {
    EXPECT_FALSE(parse_duration(text)) << text;
  }
}

TEST(DurationText, the_shortest_spelling_is_written) {
  EXPECT_EQ(to_string(Duration(0)), "0s");
  EXPECT_EQ(to_string(Duration(250)), "250ms");
  EXPECT_EQ(to_string(Duration(1500)), "1500ms");
  EXPECT_EQ(to_string(25s), "25s");
  EXPECT_EQ(to_string(90s), "90s");
  EXPECT_EQ(to_string(120s), "2min");
  EXPECT_EQ(to_string(2h), "2h");
  EXPECT_EQ(to_string(48h), "2d");
}

TEST(DurationText, what_is_written_is_read) {
  for (const auto duration : {1ms, 999ms, 1000ms, 59999ms, 60000ms, 3600000ms, 86400001ms}) {
    EXPECT_EQ(parse_duration(to_string(duration)), duration);
  }
}

}  // namespace
}  // namespace pulse
