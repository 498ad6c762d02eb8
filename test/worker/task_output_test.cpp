// What a task may say on PULSE_FD, and what becomes of everything else.
#include "task/executable/output.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace pulse {
namespace {

using namespace std::chrono_literals;

constexpr BootClock::time_point kStart{1000s};

struct Said {
  TaskProgress progress;
  std::optional<std::string> result;
  std::size_t dropped_lines = 0;
};

Said said_by(std::string_view bytes) {
  TaskOutput output;
  output.feed(bytes);
  output.finish();
  return {output.take_rest().value_or(TaskProgress{}), output.result(), output.dropped_lines()};
}

TEST(TaskOutput, one_line_may_carry_everything) {
  const Said said = said_by(
      R"({"progress":0.4,"message":"copying","stage":"copy","checkpoint":[1],"result":true})"
      "\n");
  EXPECT_EQ(said.progress.fraction, 0.4);
  EXPECT_EQ(said.progress.message, "copying");
  EXPECT_EQ(said.progress.stage, "copy");
  EXPECT_EQ(said.progress.checkpoint, "[1]");
  EXPECT_EQ(said.result, "true");
  EXPECT_EQ(said.dropped_lines, 0U);
}

TEST(TaskOutput, the_newest_value_of_each_field_wins) {
  const Said said = said_by(
      "{\"progress\":0.1,\"message\":\"a\"}\n{\"progress\":0.2}\n{\"result\":1}\n{\"result\":2}\n"
      "{\"checkpoint\":1}\n{\"checkpoint\":2}\n");
  EXPECT_EQ(said.progress.fraction, 0.2);
  EXPECT_EQ(said.progress.message, "a");
  EXPECT_EQ(said.progress.checkpoint, "2");
  EXPECT_EQ(said.result, "2");
}

TEST(TaskOutput, what_is_left_is_kept_to_the_letter_and_null_is_nothing) {
  TaskOutput output;
  output.feed("{\"payload\":[1]}\n{\"payload\": [2, {\"a\": 1.50}]}\n{\"payload\":null}\n");
  output.finish();
  EXPECT_EQ(output.payload(), R"([2, {"a": 1.50}])");
  EXPECT_FALSE(output.next_report()) << "it is no progress";
}

TEST(TaskOutput, values_are_kept_to_the_letter) {
  const std::string value =
      R"({"z":1.10,"a":[12345678901234567890123,-0.0,1e5,{"z":null,"z":[[],{}]}],)"
      R"("t":"\"\\ä\u0000\u000a"})";
  EXPECT_EQ(said_by("{\"checkpoint\": " + value + "}\n").progress.checkpoint, value);
  EXPECT_EQ(said_by("{\"result\": " + value + "}\n").result, value);
  EXPECT_EQ(said_by("{\"result\": { \"a\" : [ 1 , \"b\" ] } }\n").result,
            R"({ "a" : [ 1 , "b" ] })");
  EXPECT_EQ(said_by("{\"result\":\"\\u00e4\\/\"}\n").result, R"("\u00e4\/")");
  EXPECT_EQ(said_by("{\"result\":null}\n").result, "null");
}

TEST(TaskOutput, other_keys_and_empty_lines_are_nothing) {
  const Said said = said_by("\n  \r\n{\"later\":{\"progress\":7,\"a\":[\"b\"]},\"x\":1}\n{}\n");
  EXPECT_TRUE(said.progress.empty());
  EXPECT_EQ(said.dropped_lines, 0U);
}

TEST(TaskOutput, null_says_nothing_about_progress) {
  const Said said = said_by(R"({"progress":null,"message":null,"stage":null})");
  EXPECT_TRUE(said.progress.empty());
  EXPECT_EQ(said.dropped_lines, 0U);
}

TEST(TaskOutput, malformed_lines_are_dropped_as_a_whole_and_counted) {
  const std::vector<std::string> lines = {
      "hello",
      "1",
      "null",
      "\"progress\"",
      "[{\"progress\":0.5}]",
      "{\"progress\":0.5",
      "{\"progress\":0.5}}",
      "{\"progress\":0.5} {\"progress\":0.5}",
      "{\"progress\":\"0.5\"}",
      "{\"progress\":true}",
      "{\"progress\":[0.5]}",
      "{\"progress\":{}}",
      "{\"progress\":-0.1}",
      "{\"progress\":1.1}",
      "{\"progress\":2}",
      "{\"progress\":NaN}",
      "{\"message\":5}",
      "{\"stage\":[\"a\"]}",
      "{\"message\":\"kept?\",\"progress\":5}",
      "{\"checkpoint\":}",
      "{\"result\":01}",
      "{\"result\":\"\xFF\"}",
      std::string("{\"result\":\"\0\"}", 14),
      "{'result':1}",
  };
  for (const std::string& line : lines) {
    const Said said = said_by(line + "\n");
    EXPECT_EQ(said.dropped_lines, 1U) << line;
    EXPECT_TRUE(said.progress.empty()) << line;
    EXPECT_FALSE(said.result) << line;
  }
}

TEST(TaskOutput, nesting_is_bounded) {
  const auto nested = [](int depth) {
    return "{\"result\":" + std::string(depth, '[') + std::string(depth, ']') + "}\n";
  };
  EXPECT_TRUE(said_by(nested(499)).result);
  EXPECT_EQ(said_by(nested(500)).dropped_lines, 1U);
  EXPECT_EQ(said_by(nested(500'000)).dropped_lines, 1U);
}

TEST(TaskOutput, a_line_of_a_megabyte_is_read_and_a_longer_one_is_dropped) {
  const std::string frame = "{\"result\":\"\"}";
  const auto line_of = [&](std::size_t size) {
    return "{\"result\":\"" + std::string(size - frame.size(), 'x') + "\"}";
  };
  EXPECT_TRUE(said_by(line_of(TaskOutput::kMaxLineBytes) + "\n").result);
  EXPECT_EQ(said_by(line_of(TaskOutput::kMaxLineBytes + 1) + "\n").dropped_lines, 1U);
  // What comes after it is read again.
  const Said said = said_by(line_of(3 * TaskOutput::kMaxLineBytes) + "\n{\"result\":5}\n");
  EXPECT_EQ(said.dropped_lines, 1U);
  EXPECT_EQ(said.result, "5");
}

TEST(TaskOutput, how_the_bytes_come_changes_nothing) {
  const std::string bytes =
      "{\"progress\":0.25}\nrubbish\n\n{\"message\":\"\xE2\x82\xAC\"}\r\n{\"result\":[1,2]}";
  for (std::size_t size = 1; size <= bytes.size(); ++size) {
    TaskOutput output;
    for (std::size_t at = 0; at < bytes.size(); at += size) {
      output.feed(std::string_view(bytes).substr(at, size));
    }
    EXPECT_FALSE(output.result()) << "the last line has not ended yet";
    output.finish();
    EXPECT_EQ(output.result(), "[1,2]");
    EXPECT_EQ(output.dropped_lines(), 1U);
    const auto progress = output.take_rest();
    ASSERT_TRUE(progress);
    EXPECT_EQ(progress->fraction, 0.25);
    EXPECT_EQ(progress->message, "\xE2\x82\xAC");
  }
}

TEST(TaskOutput, an_overlong_last_line_without_an_end_is_counted_once) {
  EXPECT_EQ(said_by(std::string(5 * TaskOutput::kMaxLineBytes, 'x')).dropped_lines, 1U);
}

TEST(TaskOutput, message_and_stage_are_cut_and_storable) {
  const std::string euros = [] {
    std::string text;
    for (int i = 0; i < 10'000; ++i) text += "\xE2\x82\xAC";
    return text;
  }();
  const Said said = said_by("{\"message\":\"" + euros + "\",\"stage\":\"" + euros + "\"}\n");
  EXPECT_EQ(said.progress.message->size(), 8190U);  // whole characters in 8 kB
  EXPECT_EQ(said.progress.stage->size(), 126U);
  EXPECT_EQ(said_by("{\"message\":\"a\\u0000b\"}\n").progress.message,
            "a\xEF\xBF\xBD"
            "b");
}

TEST(TaskOutput, a_shorter_interval_hands_progress_over_sooner) {
  TaskOutput output(50ms);
  output.feed("{\"progress\":0.1}\n");
  ASSERT_TRUE(output.take_due(kStart));
  output.feed("{\"progress\":0.2}\n");
  EXPECT_EQ(output.next_report(), kStart + 50ms);
  EXPECT_FALSE(output.take_due(kStart + 49ms));
  EXPECT_TRUE(output.take_due(kStart + 50ms));
}

TEST(TaskOutput, progress_is_handed_over_at_once_and_then_once_a_second) {
  TaskOutput output;
  EXPECT_FALSE(output.next_report());
  EXPECT_FALSE(output.take_due(kStart));
  output.feed("{\"progress\":0.1}\n");
  ASSERT_TRUE(output.next_report());
  EXPECT_LE(*output.next_report(), kStart);
  EXPECT_EQ(output.take_due(kStart)->fraction, 0.1);

  output.feed("{\"progress\":0.2,\"stage\":\"two\"}\n{\"progress\":0.3}\n");
  EXPECT_EQ(output.next_report(), kStart + 1s);
  EXPECT_FALSE(output.take_due(kStart + 999ms));
  const auto merged = output.take_due(kStart + 1s);
  ASSERT_TRUE(merged);
  EXPECT_EQ(merged->fraction, 0.3);
  EXPECT_EQ(merged->stage, "two");
  EXPECT_FALSE(output.next_report());

  // The interval counts from the last report, so a quiet time is not saved up.
  output.feed("{\"progress\":0.4}\n");
  EXPECT_EQ(output.take_due(kStart + 10s)->fraction, 0.4);
  output.feed("{\"progress\":0.5}\n");
  EXPECT_FALSE(output.take_due(kStart + 10s + 999ms));
  EXPECT_EQ(output.take_rest()->fraction, 0.5);
  EXPECT_FALSE(output.take_rest());
}

TEST(TaskOutput, a_result_alone_reports_no_progress) {
  TaskOutput output;
  output.feed("{\"result\":1}\n");
  EXPECT_FALSE(output.next_report());
  EXPECT_FALSE(output.take_rest());
}

}  // namespace
}  // namespace pulse
