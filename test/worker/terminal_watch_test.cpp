// A terminal that is closed, seen by a program that only writes to it.
#include "observe/terminal_watch.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

namespace pulse {
namespace {

class TerminalWatchTest : public ::testing::Test {
 protected:
  TerminalWatchTest() {
    int window = -1;
    int terminal = -1;
    EXPECT_EQ(openpty(&window, &terminal, nullptr, nullptr, nullptr), 0);
    window_.reset(window);
    terminal_.reset(terminal);
  }

  // Turns once something has happened, or a moment has passed.
  void turn() {
    Timer moment(loop_.timers(), [] {});
    moment.start_in(std::chrono::milliseconds(100));
    uv_run(loop_.uv(), UV_RUN_ONCE);
  }

  SystemClock clock_;
  EventLoop loop_{clock_};
  UniqueFd window_;
  UniqueFd terminal_;
  int closed_ = 0;
};

TEST_F(TerminalWatchTest, its_end_is_told_once) {
  const TerminalWatch watch(loop_, terminal_.get(), [this] { ++closed_; });
  turn();
  EXPECT_EQ(closed_, 0);
  window_.reset();
  while (closed_ == 0) turn();
  turn();
  turn();
  EXPECT_EQ(closed_, 1);
}

TEST_F(TerminalWatchTest, it_may_have_been_closed_before) {
  window_.reset();
  const TerminalWatch watch(loop_, terminal_.get(), [this] { ++closed_; });
  while (closed_ == 0) turn();
}

TEST_F(TerminalWatchTest, what_is_typed_is_no_end_and_stays_unread) {
  const TerminalWatch watch(loop_, terminal_.get(), [this] { ++closed_; });
  ASSERT_EQ(write(window_.get(), "typed\n", 6), 6);
  turn();
  turn();
  EXPECT_EQ(closed_, 0);
  char text[8];
  EXPECT_EQ(read(terminal_.get(), text, sizeof text), 6);
  window_.reset();
  while (closed_ == 0) turn();
}

TEST_F(TerminalWatchTest, the_terminal_keeps_its_flags) {
  const int before = fcntl(terminal_.get(), F_GETFL);
  const TerminalWatch watch(loop_, terminal_.get(), [] {});
  turn();
  EXPECT_EQ(fcntl(terminal_.get(), F_GETFL), before) << "a shell that shares them could not read";
}

}  // namespace
}  // namespace pulse
