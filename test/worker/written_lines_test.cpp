// What tasks print, as lines of the log: whole, attributed, and bounded.
#include "task/executable/written_lines.hpp"

#include <gtest/gtest.h>

#include "fake_clock.hpp"
#include "log_capture.hpp"

namespace pulse {
namespace {

class WrittenLinesTest : public ::testing::Test {
 protected:
  int count(const std::string& text, const std::string& part) {
    int found = 0;
    for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
    return found;
  }

  FakeClock clock_;
  Timers timers_{clock_};
  LogCapture capture_;
  WrittenLog log_{TaskOutputUse::log, timers_, capture_.log()};
  WrittenLines lines_{log_, {"mail", 7, 2}};
};

TEST_F(WrittenLinesTest, a_line_is_told_whole_with_its_job_and_task) {
  lines_.feed(WrittenLines::out, "hel");
  lines_.feed(WrittenLines::err, "oops\r\n");
  lines_.feed(WrittenLines::out, "lo\n\n  \nlast");
  lines_.finish();
  const std::string text = capture_.text();
  const auto oops = text.find("info output job=7 task=mail attempt=2 stream=stderr text=oops\n");
  const auto hello = text.find("info output job=7 task=mail attempt=2 stream=stdout text=hello\n");
  EXPECT_NE(oops, std::string::npos) << text;
  EXPECT_LT(oops, hello) << text;
  EXPECT_NE(text.find("stream=stdout text=last\n"), std::string::npos) << text;
  EXPECT_EQ(count(text, " output "), 3) << "no line for a blank one";
}

TEST_F(WrittenLinesTest, a_process_of_many_jobs_names_its_task_only) {
  WrittenLines lines(log_, {"mail", {}, {}});
  lines.feed(WrittenLines::err, "warm\n");
  EXPECT_TRUE(capture_.has("info output task=mail stream=stderr text=warm\n"));
}

TEST_F(WrittenLinesTest, a_long_line_is_cut_and_so_marked) {
  for (int i = 0; i < 1000; ++i) lines_.feed(WrittenLines::out, std::string(100'000, 'x'));
  lines_.feed(WrittenLines::out, "\nnext\n");
  const std::string text = capture_.text();
  EXPECT_NE(text.find(std::string(997, 'x') + "\xE2\x80\xA6"), std::string::npos);
  EXPECT_EQ(text.find(std::string(998, 'x')), std::string::npos);
  EXPECT_NE(text.find("text=next"), std::string::npos);
}

TEST_F(WrittenLinesTest, a_flood_is_bounded_in_each_second_and_counted) {
  for (int i = 0; i < 250; ++i) lines_.feed(WrittenLines::out, "flood\n");
  clock_.move_to(clock_.now() + std::chrono::seconds(1));
  lines_.feed(WrittenLines::out, "later\n");
  for (int i = 0; i < 100; ++i) lines_.feed(WrittenLines::out, "flood\n");
  lines_.finish();
  const std::string text = capture_.text();
  EXPECT_EQ(count(text, "text=flood"), 199);
  EXPECT_NE(text.find("warning output_left_out job=7 task=mail lines=150\n"), std::string::npos);
  EXPECT_NE(text.find("warning output_left_out job=7 task=mail lines=1\n"), std::string::npos);
}

TEST_F(WrittenLinesTest, a_text_with_line_breaks_is_one_line_of_the_budget) {
  const std::string stack = "it broke" + std::string(50, '\n') + "in main";
  for (int i = 0; i < 100; ++i) lines_.tell("error", stack, {"mail", i, 1});
  lines_.tell("error", "no place", {"mail", 100, 1});
  const std::string text = capture_.text();
  EXPECT_EQ(count(text, "error output "), 100);
  EXPECT_EQ(count(text, "in main"), 100);
  EXPECT_EQ(count(text, "\n"), 100) << "the log escapes line breaks";
}

TEST_F(WrittenLinesTest, a_long_text_is_cut_and_so_marked) {
  lines_.tell("error", std::string(4001, 'x'), {"mail", 7, 1});
  const std::string text = capture_.text();
  EXPECT_NE(text.find(std::string(3997, 'x') + "\xE2\x80\xA6"), std::string::npos);
  EXPECT_EQ(text.find(std::string(3998, 'x')), std::string::npos);
}

TEST_F(WrittenLinesTest, all_tasks_together_are_bounded_as_well) {
  for (int task = 0; task < 20; ++task) {
    WrittenLines lines(log_, {"mail", task, 1});
    for (int i = 0; i < 100; ++i) lines.feed(WrittenLines::out, "flood\n");
  }
  EXPECT_EQ(count(capture_.text(), "text=flood"), 1000);
}

}  // namespace
}  // namespace pulse
