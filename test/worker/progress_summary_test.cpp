// What who waits is told of how far a worker is.
#include "observe/progress_summary.hpp"

#include <gtest/gtest.h>

#include "fake_clock.hpp"
#include "log_capture.hpp"

namespace pulse {
namespace {

using namespace std::chrono_literals;

class ProgressSummaryTest : public ::testing::Test {
 protected:
  void end_jobs(const char* event, int count) {
    for (int i = 0; i < count; ++i) capture_.log().info(event, {{"job", i}});
  }

  FakeClock clock_;
  int columns_ = 80;
  ProgressSummary progress_{clock_, [this] { return columns_; }};
  LogCapture capture_{LogFormat::text, LogLevel::error};
};

TEST_F(ProgressSummaryTest, it_begins_with_nothing) {
  EXPECT_EQ(progress_.text(), "done 0, failed 0, running 0, 0:00");
}

TEST_F(ProgressSummaryTest, it_counts_what_ends_whether_it_is_logged_or_not) {
  progress_.show(capture_.log());
  end_jobs("completed", 12);
  end_jobs("failed", 3);
  end_jobs("released", 2);
  progress_.publish_running(4);
  EXPECT_EQ(progress_.text(), "done 12, failed 3, running 4, 0:00");
  progress_.publish_running(0);
  EXPECT_EQ(progress_.text(), "done 12, failed 3, running 0, 0:00");
}

TEST_F(ProgressSummaryTest, it_tells_for_how_long_and_how_fast) {
  progress_.show(capture_.log());
  end_jobs("completed", 18);
  end_jobs("failed", 2);
  clock_.advance(999ms);
  EXPECT_EQ(progress_.text(), "done 18, failed 2, running 0, 0:00");
  clock_.advance(7001ms);
  EXPECT_EQ(progress_.text(), "done 18, failed 2, running 0, 0:08, 2.5/s");
  clock_.advance(1h);
  EXPECT_EQ(progress_.text(), "done 18, failed 2, running 0, 1:00:08, 0.0/s");
}

TEST_F(ProgressSummaryTest, it_leaves_the_last_column_of_the_terminal_free) {
  columns_ = 20;
  EXPECT_EQ(progress_.text(), "done 0, failed 0, r");
  columns_ = 0;
  EXPECT_EQ(progress_.text(), "");
}

}  // namespace
}  // namespace pulse
