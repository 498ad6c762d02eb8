// Zombies of a container's PID 1: gone, while each child of the loop keeps its exit code.
#include "task/supervised/zombies.hpp"

#include <sys/wait.h>

#include <array>
#include <csignal>

#include "subreaper_bench.hpp"

namespace pulse {
namespace {

bool never() { return false; }

// Whether this process has no child, dead or alive.
bool is_childless() {
  siginfo_t ended{};
  return waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) != 0 && errno == ECHILD;
}

class ZombiesTest : public SubreaperBench {
 protected:
  void SetUp() override {
    SubreaperBench::SetUp();
    ASSERT_TRUE(is_childless());
  }

  // So many children whose parent is gone, and which live until end_orphans().
  void given_orphans(int count) {
    std::array<int, 2> ends{};
    ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
    UniqueFd reader(ends[0]);
    life_.reset(ends[1]);
    const pid_t parent = fork();
    if (parent == 0) {
      life_.reset();
      while (count-- > 0) {
        char byte = 0;
        if (fork() == 0) _exit(static_cast<int>(::read(reader.get(), &byte, 1)));
      }
      _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(parent, &status, 0), parent);
  }
  void end_orphans() { life_.reset(); }
  void wait_for_a_zombie() {
    siginfo_t ended{};
    ASSERT_EQ(waitid(P_ALL, 0, &ended, WEXITED | WNOWAIT), 0);
  }
  static bool has_zombie() {
    siginfo_t ended{};
    return waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid != 0;
  }

  UniqueFd life_;
};

TEST_F(ZombiesTest, those_from_before_it_began_are_reaped) {
  given_orphans(40);
  end_orphans();
  wait_for_a_zombie();
  const Zombies zombies(loop_, never);
  turn_until(is_childless);
}

TEST_F(ZombiesTest, an_orphan_is_left_alone_until_it_ends) {
  const Zombies zombies(loop_, never);
  given_orphans(40);
  given_child(7);
  turn_until([this] { return ended_.size() == 1; });
  EXPECT_FALSE(is_childless());
  end_orphans();
  turn_until(is_childless);
}

TEST_F(ZombiesTest, children_of_the_loop_keep_their_exit_codes) {
  const Zombies zombies(loop_, never);
  for (int round = 0; round < 5; ++round) {
    given_orphans(20);
    for (int code = 1; code <= 20; ++code) given_child(code);
    end_orphans();
    wait_for_ends_of_children();
    turn_until([this] { return is_childless() && ended_.size() == expected_.size(); });
    EXPECT_EQ(ended_, expected_);
    ended_.clear();
    expected_.clear();
  }
}

// As where the signal of a child comes a moment after its end.
TEST_F(ZombiesTest, an_end_of_which_the_loop_has_not_heard_is_left_to_it) {
  sigset_t child_ends;
  sigemptyset(&child_ends);
  sigaddset(&child_ends, SIGCHLD);
  ASSERT_EQ(pthread_sigmask(SIG_BLOCK, &child_ends, nullptr), 0);
  given_child(7);
  wait_for_ends_of_children();
  given_orphans(3);
  end_orphans();
  int looks = 0;
  const Zombies zombies(loop_, [&] { return ++looks, false; });
  turn_until([&] { return looks >= 2; });
  ASSERT_EQ(pthread_sigmask(SIG_UNBLOCK, &child_ends, nullptr), 0);
  turn_until([this] { return is_childless() && ended_.size() == 1; });
  EXPECT_EQ(ended_, expected_);
}

TEST_F(ZombiesTest, they_stay_while_they_have_a_use) {
  bool must_stay = true;
  int asked = 0;
  const Zombies zombies(loop_, [&] { return ++asked, must_stay; });
  given_orphans(3);
  end_orphans();
  wait_for_a_zombie();
  turn_until([&] { return asked >= 3; });
  EXPECT_TRUE(has_zombie());
  must_stay = false;
  turn_until(is_childless);
}

}  // namespace
}  // namespace pulse
