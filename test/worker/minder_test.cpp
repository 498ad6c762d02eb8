// pulse-minder by itself: its descriptors, its line, its size.
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <functional>

#include "minder/children.hpp"
#include "minder/protocol.hpp"
#include "task_bench.hpp"

namespace pulse {
namespace {

using minder::Order;
using minder::Report;
using std::chrono::milliseconds;

// So long that a shell can say something before it is over, on any machine.
constexpr milliseconds kGrace{1500};

class MinderTest : public TaskBench {
 protected:
  // Starts the minder for a task, with the deadline of the first ping and `grace` for silence.
  void start_minder(const std::string& name, BootClock::time_point deadline,
                    milliseconds grace = milliseconds(100)) {
    const Executable executable = must_find(name);
    std::array<int, 2> ends{};
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    line_.reset(ends[0]);
    const UniqueFd minder_end(ends[1]);
    const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
    order(Order::kPing, deadline);
    if (first_orders_) first_orders_();
    minder_ = fork();
    if (minder_ == 0) {
      place({null.get(), null.get(), null.get(), null.get(), minder_end.get(),
             executable.directory.get(), executable.file.get(), executable.folder.get()});
      execl(PULSE_MINDER_PATH, PULSE_MINDER_PATH, "7", std::to_string(grace.count()).c_str(),
            executable.path.c_str(), nullptr);
      _exit(1);
    }
  }

  static void place(std::array<int, minder::kFdCount> fds) {
    for (int& fd : fds) fd = fcntl(fd, F_DUPFD, 100);
    for (int i = 0; i < minder::kFdCount; ++i) dup2(fds[static_cast<std::size_t>(i)], i);
  }

  void order(Order::Kind kind, BootClock::time_point at) {
    const Order message{kind, 0, at.time_since_epoch().count()};
    ASSERT_EQ(send(line_.get(), &message, sizeof message, MSG_NOSIGNAL),
              static_cast<ssize_t>(sizeof message));
  }

  // The next report; all zero at the end of the line.
  Report next_report() {
    Report report{};
    EXPECT_TRUE(is_readable_within(line_.get(), kTestLimit));
    const ssize_t size = recv(line_.get(), &report, sizeof report, 0);
    EXPECT_TRUE(size == 0 || size == static_cast<ssize_t>(sizeof report));
    return report;
  }

  bool says_nothing_for(milliseconds time) { return !is_readable_within(line_.get(), time); }

  int exit_code() {
    int status = 0;
    EXPECT_EQ(waitpid(minder_, &status, 0), minder_);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  static int exit_code_of_minder_with(const std::vector<std::string>& arguments) {
    std::vector<const char*> pointers{PULSE_MINDER_PATH};
    for (const std::string& argument : arguments) pointers.push_back(argument.c_str());
    pointers.push_back(nullptr);
    const pid_t process = fork();
    if (process == 0) {
      execv(PULSE_MINDER_PATH, const_cast<char**>(pointers.data()));
      _exit(1);
    }
    int status = 0;
    EXPECT_EQ(waitpid(process, &status, 0), process);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  static BootClock::time_point in(milliseconds time) { return BootClock::now() + time; }

  std::function<void()> first_orders_;  // what stands on the line before the minder exists
  UniqueFd line_;
  pid_t minder_ = 0;
};

TEST_F(MinderTest, wrong_usage_is_refused) {
  constexpr int kUsage = 64;
  EXPECT_EQ(exit_code_of_minder_with({}), kUsage);
  EXPECT_EQ(exit_code_of_minder_with({"7", "100"}), kUsage);
  EXPECT_EQ(exit_code_of_minder_with({"7", "soon", "/t/a"}), kUsage);
  EXPECT_EQ(exit_code_of_minder_with({"7", "-1", "/t/a"}), kUsage);
  EXPECT_EQ(exit_code_of_minder_with({"-x", "7", "100", "/t/a"}), kUsage);
  EXPECT_EQ(exit_code_of_minder_with({"-n", "many", "7", "100", "/t/a"}), kUsage);
  EXPECT_EQ(exit_code_of_minder_with({"-n", "0", "7", "100", "/t/a"}), kUsage);
  EXPECT_EQ(exit_code_of_minder_with({"-p", "-n", "9", "7", "100"}), kUsage);
  EXPECT_EQ(exit_code_of_minder_with({"7", "100", "/t/a"}), kUsage);  // without its descriptors
}

TEST_F(MinderTest, start_and_end_are_reported_and_then_it_exits) {
  given_task("task", "exit 5");
  start_minder("task", in(kTestLimit));
  const Report started = next_report();
  EXPECT_EQ(started.kind, Report::kStarted);
  EXPECT_GT(started.value, 0);
  const Report ended = next_report();
  EXPECT_EQ(ended.kind, Report::kExited);
  EXPECT_EQ(ended.value, 5);
  EXPECT_EQ(ended.detail, Report::kNobody);
  EXPECT_EQ(next_report().kind, 0);
  EXPECT_EQ(exit_code(), 0);
}

TEST_F(MinderTest, a_closed_line_ends_the_task_at_once) {
  LifeLine holder(path_of("line"));
  given_task("task", "trap '' TERM; exec 9>" + holder.path() + "; echo up >&9; tail -f /dev/null");
  start_minder("task", in(std::chrono::hours(1)));
  ASSERT_EQ(holder.next_line(), "up");
  line_.reset();
  EXPECT_TRUE(holder.ends());
  EXPECT_EQ(exit_code(), 0);
}

TEST_F(MinderTest, a_passed_deadline_is_first_a_request_and_then_a_kill) {
  LifeLine holder(path_of("line"));
  given_task("task", "trap 'echo asked >&9' TERM; exec 9>" + holder.path() +
                         "; echo up >&9; while :; do tail -f /dev/null & wait; done");
  start_minder("task", in(kTestLimit), kGrace);
  ASSERT_EQ(next_report().kind, Report::kStarted);
  ASSERT_EQ(holder.next_line(), "up");
  const auto told = BootClock::now();
  order(Order::kPing, told - milliseconds(1));
  EXPECT_EQ(holder.next_line(), "asked");
  const Report ended = next_report();
  EXPECT_EQ(ended.kind, Report::kSignalled);
  EXPECT_EQ(ended.value, SIGKILL);
  EXPECT_EQ(ended.detail, Report::kSilence);
  EXPECT_GE(BootClock::now() - told, kGrace);
  EXPECT_EQ(exit_code(), 0);
}

TEST_F(MinderTest, the_last_ping_counts_whatever_the_earlier_ones_said) {
  given_task("task", "tail -f /dev/null");
  constexpr milliseconds kFirst{1500};
  start_minder("task", in(kFirst));
  order(Order::kPing, in(kTestLimit));
  ASSERT_EQ(next_report().kind, Report::kStarted);
  EXPECT_TRUE(says_nothing_for(kFirst + milliseconds(200)));
  order(Order::kTerminate, in(kTestLimit));
  EXPECT_EQ(next_report().detail, Report::kWorker);
  EXPECT_EQ(exit_code(), 0);
}

TEST_F(MinderTest, a_ping_does_not_call_back_an_end_that_has_begun) {
  LifeLine holder(path_of("line"));
  given_task("task", "trap 'echo asked >&9' TERM; exec 9>" + holder.path() +
                         "; echo up >&9; while :; do tail -f /dev/null & wait; done");
  start_minder("task", in(kTestLimit), kGrace);
  ASSERT_EQ(next_report().kind, Report::kStarted);
  ASSERT_EQ(holder.next_line(), "up");
  order(Order::kPing, BootClock::now());
  ASSERT_EQ(holder.next_line(), "asked");
  order(Order::kPing, in(kTestLimit));
  EXPECT_EQ(next_report().value, SIGKILL);
  EXPECT_EQ(exit_code(), 0);
}

TEST_F(MinderTest, silence_shortens_the_grace_of_an_end_that_has_begun) {
  LifeLine holder(path_of("line"));
  given_task("task", "trap '' TERM; exec 9>" + holder.path() + "; echo up >&9; tail -f /dev/null");
  start_minder("task", in(kTestLimit));
  ASSERT_EQ(next_report().kind, Report::kStarted);
  ASSERT_EQ(holder.next_line(), "up");
  order(Order::kTerminate, in(std::chrono::hours(1)));
  order(Order::kPing, in(milliseconds(300)));
  const Report ended = next_report();
  EXPECT_EQ(ended.value, SIGKILL);
  EXPECT_EQ(ended.detail, Report::kWorker);
  EXPECT_EQ(exit_code(), 0);
}

TEST_F(MinderTest, a_task_whose_deadline_has_passed_is_not_started) {
  given_task("task", "echo ran >" + path_of("ran"));
  start_minder("task", BootClock::now() - milliseconds(1));
  const Report report = next_report();
  EXPECT_EQ(report.kind, Report::kNotStarted);
  EXPECT_EQ(report.value, ETIME);
  EXPECT_EQ(report.detail, Report::kTooLate);
  EXPECT_EQ(exit_code(), 0);
  EXPECT_NE(access(path_of("ran").c_str(), F_OK), 0);
}

TEST_F(MinderTest, a_task_whose_end_was_ordered_first_is_not_started) {
  given_task("task", "echo ran >" + path_of("ran"));
  first_orders_ = [this] { order(Order::kTerminate, in(kTestLimit)); };
  start_minder("task", in(kTestLimit));
  EXPECT_EQ(next_report().detail, Report::kTooLate);
  EXPECT_EQ(exit_code(), 0);
  EXPECT_NE(access(path_of("ran").c_str(), F_OK), 0);
}

TEST_F(MinderTest, a_torn_order_is_a_closed_line) {
  given_task("task", "tail -f /dev/null");
  start_minder("task", in(kTestLimit));
  ASSERT_EQ(next_report().kind, Report::kStarted);
  ASSERT_EQ(send(line_.get(), "torn", 4, MSG_NOSIGNAL), 4);
  const Report ended = next_report();
  EXPECT_EQ(ended.value, SIGTERM);
  EXPECT_EQ(ended.detail, Report::kSilence);
  EXPECT_EQ(exit_code(), 0);
}

TEST_F(MinderTest, signals_do_not_end_it) {
  given_task("task", "read go <" + path_of("go") + "; exit 6");
  ASSERT_EQ(mkfifo(path_of("go").c_str(), 0600), 0);
  start_minder("task", in(kTestLimit));
  ASSERT_EQ(next_report().kind, Report::kStarted);
  for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGUSR1, SIGPIPE, SIGALRM}) {
    ASSERT_EQ(::kill(minder_, signal), 0);
  }
  std::ofstream(path_of("go")) << "go\n";
  const Report ended = next_report();
  EXPECT_EQ(ended.kind, Report::kExited);
  EXPECT_EQ(ended.value, 6);
  EXPECT_EQ(exit_code(), 0);
}

TEST_F(MinderTest, a_further_one_is_small) {
#ifdef PULSE_SANITIZED
  GTEST_SKIP() << "a sanitizer takes more than the minder";
#endif
  given_task("task", "tail -f /dev/null");
  start_minder("task", in(kTestLimit));
  ASSERT_EQ(next_report().kind, Report::kStarted);
  // Beside another, as they stand in a worker: the pages of the program itself are shared.
  UniqueFd first_line = std::move(line_);
  const pid_t first = minder_;
  start_minder("task", in(kTestLimit));
  ASSERT_EQ(next_report().kind, Report::kStarted);
  std::ifstream rollup("/proc/" + std::to_string(minder_) + "/smaps_rollup");
  std::string line;
  std::getline(rollup, line);  // the addresses
  long private_kilobytes = 0;
  for (std::string name; rollup >> name && std::getline(rollup, line);) {
    if (name.starts_with("Private_")) private_kilobytes += std::stol(line);
  }
  EXPECT_GT(private_kilobytes, 0);
  EXPECT_LE(private_kilobytes, 200);
  line_.reset();
  EXPECT_EQ(exit_code(), 0);
  first_line.reset();
  EXPECT_EQ(waitpid(first, nullptr, 0), first);
}

TEST_F(MinderTest, both_ways_to_list_children_agree) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  std::vector<pid_t> children;
  for (int i = 0; i < 3; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      writer.reset();
      char byte = 0;
      _exit(::read(reader.get(), &byte, 1) == 0 ? 0 : 1);
    }
    children.push_back(child);
  }
  std::array<pid_t, 16> listed{};
  for (const auto list : {minder::list_children, minder::list_children_by_parent}) {
    std::vector<pid_t> found(
        listed.begin(), listed.begin() + static_cast<long>(list(listed.data(), listed.size())));
    std::sort(found.begin(), found.end());
    EXPECT_EQ(found, children);
    EXPECT_EQ(list(listed.data(), 2), 2U);  // never beyond the capacity
  }
  writer.reset();
  for (const pid_t child : children) EXPECT_EQ(waitpid(child, nullptr, 0), child);
}

}  // namespace
}  // namespace pulse
