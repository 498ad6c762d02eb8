// Log lines, and a log whose reader has stopped reading.
#include "base/log/line.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
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

TEST(LogLine, no_character_that_turns_or_hides_text_reaches_a_terminal) {
  for (const LogFormat format : {LogFormat::text, LogFormat::json}) {
    const std::string line =
        log_line(format, kNow, LogLevel::info, "failed", {{"reason", "a\u202eb\u200b"}});
    EXPECT_NE(line.find("\"a\\u202eb\\u200b\""), std::string::npos) << line;
  }
}

TEST(LogLine, no_control_character_reaches_a_terminal) {
  std::string all = "caf\u00e9 \u2713";
  for (char c = 1; c < 0x20; ++c) all += c;
  all += "\x7f\u0080\u009b2J\u009f\u00a0\x9b\xc2";  // ends with bytes that are no UTF-8
  for (const LogFormat format : {LogFormat::text, LogFormat::json}) {
    const std::string line =
        log_line(format, kNow, LogLevel::info, "failed", {{"task", all}, {"reason", "\x7f"}});
    for (std::size_t i = 0; i + 1 < line.size(); ++i) {
      const auto byte = static_cast<unsigned char>(line[i]);
      const auto next = static_cast<unsigned char>(line[i + 1]);
      EXPECT_TRUE(byte >= 0x20 && byte != 0x7f) << "byte " << i << " of " << line;
      EXPECT_FALSE(byte == 0xc2 && next < 0xa0) << "byte " << i << " of " << line;
    }
    EXPECT_NE(line.find("caf\u00e9 \u2713"), std::string::npos) << "other text is as it was";
    EXPECT_NE(line.find("\\u007f\\u0080\\u009b2J\\u009f\u00a0\ufffd\ufffd"), std::string::npos)
        << line;
  }
}

TEST(LogLine, colours_tell_how_a_job_ended_and_how_bad_an_event_is) {
  const auto coloured = [](LogLevel level, const char* event) {
    return log_line({LogFormat::text, LogColour::by_outcome}, kNow, level, event, {{"job", 1}});
  };
  const std::string time = "\x1b[2m2026-01-01T00:00:00.007Z\x1b[0m ";
  EXPECT_EQ(coloured(LogLevel::info, "completed"), time + "\x1b[32minfo completed\x1b[0m job=1\n");
  EXPECT_EQ(coloured(LogLevel::warning, "failed"), time + "\x1b[31mwarning failed\x1b[0m job=1\n");
  EXPECT_EQ(coloured(LogLevel::warning, "lost"), time + "\x1b[33mwarning lost\x1b[0m job=1\n");
  EXPECT_EQ(coloured(LogLevel::error, "refused"), time + "\x1b[31merror refused\x1b[0m job=1\n");
  EXPECT_EQ(coloured(LogLevel::info, "claimed"), time + "\x1b[36minfo claimed\x1b[0m job=1\n");
  EXPECT_EQ(coloured(LogLevel::debug, "sweep"), time + "\x1b[2mdebug sweep\x1b[0m job=1\n");
}

TEST(LogLine, json_has_no_colours) {
  EXPECT_EQ(log_line({LogFormat::json, LogColour::by_outcome}, kNow, LogLevel::info, "e", {}),
            log_line(LogFormat::json, kNow, LogLevel::info, "e", {}));
}

TEST(LogLine, empty_text_is_left_out_and_broken_text_is_mended) {
  EXPECT_EQ(log_line(LogFormat::json, kNow, LogLevel::info, "e", {{"a", ""}, {"b", "\xff"}}),
            "{\"time\":\"2026-01-01T00:00:00.007Z\",\"level\":\"info\",\"event\":\"e\","
            "\"b\":\"\xef\xbf\xbd\"}\n");
}

TEST(LogLine, a_time_is_milliseconds_with_what_is_left_of_them) {
  using namespace std::chrono_literals;
  EXPECT_EQ(log_line(LogFormat::text, kNow, LogLevel::info, "e",
                     {{"a", 1500ms}, {"b", 213us}, {"c", 10'050us}, {"d", 999ns}}),
            "2026-01-01T00:00:00.007Z info e a=1500 b=0.213 c=10.05 d=0\n");
}

// What is overdue is as far below zero.
TEST(LogLine, a_time_may_be_negative) {
  using namespace std::chrono_literals;
  EXPECT_EQ(log_line(LogFormat::text, kNow - 60 * 365 * 24h, LogLevel::info, "e",
                     {{"a", -1500ms}, {"b", -213us}, {"c", -10'050us}, {"d", -999ns}}),
            "1966-01-16T00:00:00.007Z info e a=-1500 b=-0.213 c=-10.05 d=0\n");
}

TEST(LogWriter, a_listener_hears_also_what_is_not_written) {
  LogCapture capture(LogFormat::text, LogLevel::error);
  std::string heard;
  capture.log().listen([&](std::string_view event, Log::Fields) { heard += event; });
  capture.log().debug("quiet");
  EXPECT_EQ(heard, "quiet");
  EXPECT_EQ(capture.text(), "");
}

TEST(LogWriter, every_listener_hears_it) {
  LogCapture capture;
  std::string heard;
  capture.log().listen([&](std::string_view, Log::Fields) { heard += "first "; });
  capture.log().listen([&](std::string_view, Log::Fields) { heard += "second"; });
  capture.log().info("said");
  EXPECT_EQ(heard, "first second");
  capture.log().forget_listeners();
  capture.log().info("said");
  EXPECT_EQ(heard, "first second");
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

TEST(LogWriter, what_a_full_disk_does_not_take_is_counted_and_told_when_it_does) {
  const UniqueFd file(memfd_create("log", MFD_CLOEXEC));
  const UniqueFd disk(open("/dev/full", O_WRONLY | O_CLOEXEC));
  ASSERT_TRUE(disk.valid());
  std::int64_t heard = 0;
  std::int64_t written = 0;
  {
    Log log(LogFormat::text, LogLevel::info, disk.get());
    log.listen([&heard](std::string_view event, Log::Fields fields) {
      if (event == "log_lines_dropped") heard += std::get<std::int64_t>(fields.begin()->value);
    });
    for (; heard < 3; ++written) log.info("lost");
    ASSERT_EQ(dup2(file.get(), disk.get()), disk.get());
    log.info("after");
  }
  std::string log(static_cast<std::size_t>(lseek(file.get(), 0, SEEK_END)), ' ');
  ASSERT_EQ(pread(file.get(), log.data(), log.size(), 0), static_cast<ssize_t>(log.size()));
  const std::size_t told = log.find("log_lines_dropped count=");
  ASSERT_NE(told, std::string::npos) << log;
  const auto lines = static_cast<std::int64_t>(std::count(log.begin(), log.end(), '\n'));
  const std::int64_t count = std::stoll(log.substr(log.find('=', told) + 1));
  EXPECT_EQ(count + lines, written + 2) << "each line is there or counted\n" << log;
  EXPECT_GE(count, heard);
}

// The reading end of a pipe that a log writes to.
class Reader {
  static constexpr int kPatience = 60'000;

 public:
  Reader() {
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    reader_.reset(ends[0]);
    writer_.reset(ends[1]);
  }

  int writer() const { return writer_.get(); }
  // Everything until this has come, or nothing comes for a minute; the times of lines cut off.
  std::string read_to(const std::string& end) {
    std::string text;
    char next = 0;
    pollfd readable{reader_.get(), POLLIN, 0};
    while (!text.ends_with(end) && poll(&readable, 1, kPatience) == 1 &&
           read(reader_.get(), &next, 1) == 1) {
      text += next;
    }
    const std::size_t time = text.find("20");
    if (time != std::string::npos) text.erase(time, text.find(' ', time) - time + 1);
    return text;
  }
  bool is_empty() const {
    pollfd readable{reader_.get(), POLLIN, 0};
    return poll(&readable, 1, 0) == 0;
  }

 private:
  UniqueFd reader_;
  UniqueFd writer_;
};

TEST(LogWriter, a_text_is_kept_below_the_lines_and_gone_at_the_end) {
  const std::string erase = "\r\x1b[K";
  Reader reader;
  Log log(LogFormat::text, LogLevel::info, reader.writer());
  log.info("first");
  log.keep_below([] { return "so far"; });
  EXPECT_EQ(reader.read_to("so far"), "info first\nso far");
  log.info("second");
  EXPECT_EQ(reader.read_to("so far"), erase + "info second\nso far");
  log.info("third");
  log.close();
  EXPECT_EQ(reader.read_to("third\n"), erase + "info third\n");
  EXPECT_TRUE(reader.is_empty());
}

TEST(LogWriter, a_text_below_is_gone_also_when_the_end_has_no_line) {
  Reader reader;
  Log log(LogFormat::text, LogLevel::info, reader.writer());
  log.keep_below([] { return "so far"; });
  EXPECT_EQ(reader.read_to("so far"), "so far");
  log.close();
  EXPECT_EQ(reader.read_to("K"), "\r\x1b[K");
  EXPECT_TRUE(reader.is_empty());
}

TEST(LogWriter, a_text_below_is_rewritten_ten_times_a_second_at_most) {
  Reader reader;
  int rewritten = 0;
  Log log(LogFormat::text, LogLevel::info, reader.writer());
  const auto start = std::chrono::steady_clock::now();
  log.keep_below([&] {
    log.info("again");  // there is always something to write
    return std::to_string(++rewritten) + "th";
  });
  (void)reader.read_to("5th");
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(500));
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
