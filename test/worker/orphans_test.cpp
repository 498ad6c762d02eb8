// The worker as the second subreaper: it ends what a killed minder left, and libuv's own children
// are none of its business.
#include "task/supervised/orphans.hpp"

#include <sys/wait.h>

#include <array>
#include <csignal>

#include "minder/children.hpp"
#include "subreaper_bench.hpp"
#include "task/supervised/minder_line.hpp"

namespace pulse {
namespace {

class OrphansTest : public SubreaperBench {
 protected:
  // So many processes in sessions of their own, whose parent is gone. All of them hold `reader_`'s
  // other end.
  void given_orphans(int count) {
    std::array<int, 2> ends{};
    ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
    reader_.reset(ends[0]);
    UniqueFd writer(ends[1]);
    const pid_t parent = fork();
    if (parent == 0) leave_behind(count, writer.get());
    writer.reset();
    int status = 0;
    ASSERT_EQ(waitpid(parent, &status, 0), parent);
    ASSERT_EQ(status, 0);
  }

  [[noreturn]] static void leave_behind(int count, int writer) {
    for (int i = 0; i < count; ++i) {
      std::array<int, 2> ready{};
      if (pipe(ready.data()) != 0) _exit(1);
      const pid_t orphan = fork();
      if (orphan < 0) _exit(1);
      if (orphan == 0) {
        setsid();
        close(ready[0]);
        close(ready[1]);
        for (;;) pause();
      }
      close(ready[1]);
      char byte = 0;
      // Until it has a session of its own.
      if (::read(ready[0], &byte, 1) != 0) _exit(1);
      close(ready[0]);
    }
    close(writer);
    _exit(0);
  }

  // True once nobody holds the other end.
  bool orphans_are_gone() {
    char byte = 0;
    return is_readable_within(reader_.get(), kTestLimit) && ::read(reader_.get(), &byte, 1) == 0;
  }

  UniqueFd reader_;
};

TEST_F(OrphansTest, a_crowd_is_ended_and_reaped) {
  constexpr int kMany = 1500;
  given_orphans(kMany);
  std::size_t most = 0;
  for (std::size_t seen = 0; (seen = reap_orphans()) > 0;) most = std::max(most, seen);
  EXPECT_GT(most, 0U);
  EXPECT_TRUE(orphans_are_gone());
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD) << "one was not reaped";
}

TEST_F(OrphansTest, ended_children_of_the_loop_are_left_to_it) {
  for (int code = 1; code <= 40; ++code) given_child(code);
  wait_for_ends_of_children();
  given_orphans(100);
  while (reap_orphans() > 0) {
  }
  EXPECT_TRUE(orphans_are_gone());
  turn_until([&] { return ended_.size() == expected_.size(); });
  EXPECT_EQ(ended_, expected_);
}

TEST_F(OrphansTest, those_of_a_dead_minder_are_told_of_until_they_are_gone) {
  LifeLine line(path_of("line"));
  given_task("task", "exec 9>" + line.path() +
                         "; setsid sh -c 'echo up >&9; exec tail -f /dev/null' & "
                         "read -r _ <" +
                         path_of("go"));
  ASSERT_EQ(mkfifo(path_of("go").c_str(), 0600), 0);
  EXPECT_FALSE(MinderLine::is_ending_orphans());
  start("task");
  ASSERT_EQ(line.next_line(), "up");
  std::array<pid_t, 8> children{};
  ASSERT_EQ(minder::list_children(children.data(), children.size()), 1U) << "the minder";
  ASSERT_EQ(kill(children[0], SIGKILL), 0);
  turn_until([] { return MinderLine::is_ending_orphans(); });
  turn_until([] { return !MinderLine::is_ending_orphans(); });
  EXPECT_TRUE(line.ends());
}

TEST_F(OrphansTest, tasks_go_on_while_orphans_are_ended) {
  LifeLine line(path_of("line"));
  ASSERT_EQ(mkfifo(path_of("go").c_str(), 0600), 0);
  given_task("task",
             "exec 9>" + line.path() + "; echo up >&9; read go <" + path_of("go") + "; exit 23");
  start("task");
  ASSERT_EQ(line.next_line(), "up");
  given_orphans(100);
  while (reap_orphans() > 0) {
  }
  EXPECT_TRUE(orphans_are_gone());
  std::ofstream(path_of("go")) << "go\n";
  EXPECT_EQ(wait_for_end().exit_code, 23);
}

}  // namespace
}  // namespace pulse
