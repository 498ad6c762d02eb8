// Log lines, and a log whose reader has stopped reading.
#include "log_line.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "log_capture.hpp"

namespace pulse {
namespace {

const std::chrono::system_clock::time_point kNow{std::chrono::milliseconds(1'767'225'600'007)};

TEST(LogLine, text_is_for_people) {
  EXPECT_EQ(log_line(LogFormat::text, kNow, LogLevel::info, "completed",
                     {{"job", 12}, {"task", "send/mail"}, {"reason", "exit code 1"}}),
            "2026-01-01T00:00:00.007Z info completed job=12 task=send/mail reason=\"exit code "
            "1\"\n");
}

TEST(LogLine, json_is_one_object) {
  const auto line =
      nlohmann::json::parse(log_line(LogFormat::json, kNow, LogLevel::warning, "failed",
                                     {{"job", 12}, {"task", "a\"b"}, {"reason", "two\nlines"}}));
  EXPECT_EQ(line["time"], "2026-01-01T00:00:00.007Z");
  EXPECT_EQ(line["level"], "warning");
  EXPECT_EQ(line["event"], "failed");
  EXPECT_EQ(line["job"], 12);
  EXPECT_EQ(line["task"], "a\"b");
  EXPECT_EQ(line["reason"], "two\nlines");
}

TEST(LogLine, nothing_can_forge_a_second_line_or_field) {
  const std::string line = log_line(LogFormat::text, kNow, LogLevel::info, "claimed",
                                    {{"task", "x\n2026 error stolen=1"}});
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1);
  EXPECT_NE(line.find("task=\"x\\n2026"), std::string::npos) << line;
}

TEST(LogLine, empty_text_is_left_out_and_broken_text_is_mended) {
  EXPECT_EQ(log_line(LogFormat::json, kNow, LogLevel::info, "e", {{"a", ""}, {"b", "\xff"}}),
            "{\"time\":\"2026-01-01T00:00:00.007Z\",\"level\":\"info\",\"event\":\"e\","
            "\"b\":\"\xef\xbf\xbd\"}\n");
}

TEST(LogWriter, what_is_below_the_threshold_is_not_written) {
  LogCapture capture(LogFormat::text, LogLevel::warning);
  capture.log().info("quiet");
  capture.log().error("loud");
  const std::string text = capture.text();
  EXPECT_EQ(text.find("quiet"), std::string::npos);
  EXPECT_NE(text.find("loud"), std::string::npos);
}

TEST(LogWriter, a_full_pipe_blocks_nobody_and_lost_lines_are_counted) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd reader(ends[0]);
  const UniqueFd writer(ends[1]);
  std::string text;
  {
    Log log(LogFormat::text, LogLevel::info, writer.get());
    const std::string filler(200, 'x');
    for (int i = 0; i < 30'000; ++i) log.info("flood", {{"filler", filler}});
    // The reader comes back: what waits is written, and what was lost is told.
    std::array<char, 65536> piece{};
    while (text.find("log_lines_dropped") == std::string::npos) {
      const ssize_t length = read(reader.get(), piece.data(), piece.size());
      ASSERT_GT(length, 0);
      text.append(piece.data(), static_cast<std::size_t>(length));
      log.info("after");
    }
  }
  EXPECT_NE(text.find("log_lines_dropped count="), std::string::npos);
}

TEST(LogWriter, closing_gives_up_on_a_reader_that_takes_nothing) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd reader(ends[0]);
  const UniqueFd writer(ends[1]);
  Log log(LogFormat::text, LogLevel::info, writer.get());
  const std::string filler(200, 'x');
  for (int i = 0; i < 5'000; ++i) log.info("flood", {{"filler", filler}});
  log.close();  // returning is what is tested
  log.info("too late");
}

}  // namespace
}  // namespace pulse
