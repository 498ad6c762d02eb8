// P5, P6, P11: nothing of a task outlives it, nor a worker that is dead, stopped or silent,
// whatever the task does to get away.
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <csignal>

#include "task/supervised/orphans.hpp"
#include "task_bench.hpp"

namespace pulse {
namespace {

using std::chrono::milliseconds;

// Of silence; no machine is so slow that it keeps a worker from pinging for so long.
constexpr milliseconds kLimit{2500};

class TaskEscapeTest : public TaskBench {
 protected:
  void SetUp() override {
    TaskBench::SetUp();
    ASSERT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
    line_.emplace(path_of("line"));
    void* shared = mmap(nullptr, sizeof *last_ping_, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(shared, MAP_FAILED);
    last_ping_ = static_cast<BootClock::time_point*>(shared);
  }

  void TearDown() override {
    munmap(last_ping_, sizeof *last_ping_);
    TaskBench::TearDown();
    prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
  }

  // Leaves its group and session, is nobody's child, hears no SIGTERM, holds every descriptor.
  std::string daemon() const {
    return "exec 9>" + line_->path() +
           "\n( setsid sh -c 'trap \"\" TERM HUP; echo daemon >&9; tail -f /dev/null' & )\n";
  }
  void wait_for_daemon() { wait_for_line("daemon"); }
  void wait_for_line(const std::string& wanted) {
    std::optional<std::string> line = line_->next_line();
    while (line && line != wanted) line = line_->next_line();
    ASSERT_EQ(line, wanted);
  }

  // A process that does nothing but run `name`, pinging for it as a worker does. It exits with 50
  // and who stopped the task, once that is told.
  pid_t start_worker(const std::string& name, milliseconds limit) {
    const Executable executable = must_find(name);
    ExecutableOptions options = options_for(name);
    options.ping_limit = limit;
    *last_ping_ = options.alive_as_of;
    const pid_t worker = fork();
    if (worker == 0) run_worker(executable, options, *last_ping_);
    return worker;
  }

  [[noreturn]] static void run_worker(const Executable& executable,
                                      const ExecutableOptions& options,
                                      BootClock::time_point& last_ping) {
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    const SystemClock clock;
    EventLoop loop(clock);
    ExecutionCallbacks callbacks;
    callbacks.on_end = [](const ExecutionEnd& end) {
      _exit(50 + static_cast<int>(end.stopped_by));
    };
    const auto started = ExecutableRun::start(loop, executable, options, callbacks);
    if (!started.process) _exit(1);
    struct Pings {
      ExecutableRun& process;
      BootClock::time_point& last;
    } pings{*started.process, last_ping};
    uv_timer_t timer;
    uv_timer_init(loop.uv(), &timer);
    timer.data = &pings;
    uv_timer_start(
        &timer,
        [](uv_timer_t* due) {
          const Pings& to = *static_cast<Pings*>(due->data);
          const auto now = BootClock::now();
          to.process.ping(now);
          to.last = now;
        },
        0, static_cast<std::uint64_t>(options.ping_limit.count() / 4));
    loop.run();
    _exit(2);
  }

  static int exit_code_of(pid_t process) {
    int status = 0;
    EXPECT_EQ(waitpid(process, &status, 0), process);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  // Those that came here because their worker or minder was killed.
  static void expect_no_orphans() { EXPECT_EQ(reap_orphans(), 0U); }

  std::optional<LifeLine> line_;
  BootClock::time_point* last_ping_ = nullptr;  // shared with the worker of start_worker()
};

TEST_F(TaskEscapeTest, a_daemon_is_gone_when_its_task_ends) {
  given_task("task", daemon() + "read go <" + path_of("go") + "; exit 3");
  ASSERT_EQ(mkfifo(path_of("go").c_str(), 0600), 0);
  start("task");
  wait_for_daemon();
  std::ofstream(path_of("go")) << "go\n";
  EXPECT_EQ(wait_for_end().exit_code, 3);
  EXPECT_TRUE(line_->ends());
}

TEST_F(TaskEscapeTest, a_daemon_is_gone_when_its_task_is_killed) {
  given_task("task", daemon() + "tail -f /dev/null");
  start("task");
  wait_for_daemon();
  process_->kill();
  EXPECT_EQ(wait_for_end().kind, Kind::signalled);
  EXPECT_TRUE(line_->ends());
}

TEST_F(TaskEscapeTest, many_daemons_of_daemons_are_gone) {
  given_task("task", "exec 9>" + line_->path() +
                         "\nn=0; while [ $n -lt 30 ]; do n=$((n + 1))\n"
                         "( setsid sh -c '( setsid sh -c \"tail -f /dev/null\" & ); echo up >&9; "
                         "tail -f /dev/null' & )\ndone; tail -f /dev/null");
  start("task");
  for (int i = 0; i < 30; ++i) ASSERT_EQ(line_->next_line(), "up");
  process_->kill();
  wait_for_end();
  EXPECT_TRUE(line_->ends());
}

TEST_F(TaskEscapeTest, a_dead_worker_leaves_nothing) {
  given_task("task", "trap '' TERM\n" + daemon() + "tail -f /dev/null");
  const pid_t worker = start_worker("task", kTestLimit);
  wait_for_daemon();
  ::kill(worker, SIGKILL);
  EXPECT_TRUE(line_->ends());
  EXPECT_EQ(exit_code_of(worker), -SIGKILL);
}

TEST_F(TaskEscapeTest, a_stopped_worker_leaves_nothing_after_the_limit) {
  given_task("task", "trap '' TERM\n" + daemon() + "tail -f /dev/null");
  const pid_t worker = start_worker("task", kLimit);
  wait_for_daemon();
  ::kill(worker, SIGSTOP);
  EXPECT_TRUE(line_->ends());
  const auto silence = std::chrono::floor<milliseconds>(BootClock::now() - *last_ping_);
  EXPECT_GE(silence, kLimit);
  RecordProperty("silence_ms", std::to_string(silence.count()));
  ::kill(worker, SIGCONT);
  EXPECT_EQ(exit_code_of(worker), 50 + static_cast<int>(StoppedBy::silence));
}

TEST_F(TaskEscapeTest, a_whole_stopped_group_does_not_stop_the_minder) {
  given_task("task", daemon() + "tail -f /dev/null");
  const pid_t worker = start_worker("task", kLimit);
  setpgid(worker, worker);
  wait_for_daemon();
  ::kill(-worker, SIGTSTP);
  ::kill(-worker, SIGSTOP);
  EXPECT_TRUE(line_->ends());
  ::kill(worker, SIGKILL);
  EXPECT_EQ(exit_code_of(worker), -SIGKILL);
}

TEST_F(TaskEscapeTest, pings_keep_a_task_alive_beyond_the_limit) {
  given_task("task", daemon() + "tail -f /dev/null");
  ExecutableOptions options = options_for("task");
  options.ping_limit = kLimit;
  start("task", options);
  const auto began = BootClock::now();
  auto last_ping = began;
  uv_timer_t pings;
  uv_timer_init(loop_.uv(), &pings);
  uv_timer_start(
      &pings, [](uv_timer_t*) {}, 0, 50);
  turn_until([&] {
    last_ping = BootClock::now();
    process_->ping(last_ping);
    return end_ || last_ping - began > 2 * kLimit;
  });
  EXPECT_FALSE(end_);
  uv_close(reinterpret_cast<uv_handle_t*>(&pings), nullptr);
  const ExecutionEnd end = wait_for_end();
  EXPECT_EQ(end.stopped_by, StoppedBy::silence);
  EXPECT_GE(BootClock::now() - last_ping, kLimit);
  EXPECT_TRUE(line_->ends());
}

// Unread pings make the closing of the line a reset, which must not hide what was said before.
TEST_F(TaskEscapeTest, an_end_is_told_though_pings_were_on_the_way) {
  given_task("task", "exec 9>" + line_->path() + "; echo $PPID >&9\n" +
                         "n=0; while [ $n -lt 20 ]; do n=$((n + 1))\n"
                         "( setsid tail -f /dev/null & )\ndone; exit 7");
  start("task");
  const auto minder = line_->next_line();
  ASSERT_TRUE(minder);
  const auto has_exited = [&] {
    std::ifstream stat("/proc/" + *minder + "/stat");
    std::string text;
    return !std::getline(stat, text) || text.find(") Z ") != std::string::npos;
  };
  const auto began = BootClock::now();
  while (!has_exited() && BootClock::now() - began < kTestLimit) process_->ping(BootClock::now());
  EXPECT_EQ(wait_for_end().exit_code, 7);
}

TEST_F(TaskEscapeTest, the_limit_counts_from_the_time_a_ping_speaks_of) {
  given_task("task", daemon() + "tail -f /dev/null");
  start("task");
  wait_for_daemon();
  process_->ping(BootClock::now() - kTestLimit);
  const ExecutionEnd end = wait_for_end();
  EXPECT_EQ(end.stopped_by, StoppedBy::silence);
  EXPECT_EQ(end.signal, SIGTERM);
}

TEST_F(TaskEscapeTest, a_task_that_kills_its_minder_does_not_get_away) {
  given_task("task", daemon() + "read go <" + path_of("go") + "; kill -9 $PPID; tail -f /dev/null");
  ASSERT_EQ(mkfifo(path_of("go").c_str(), 0600), 0);
  start("task");
  wait_for_daemon();
  std::ofstream(path_of("go")) << "go\n";
  const ExecutionEnd end = wait_for_end();
  EXPECT_EQ(end.kind, Kind::minder_lost);
  EXPECT_EQ(end.stopped_by, StoppedBy::nobody);
  EXPECT_FALSE(end.error.empty());
  process_.reset();
  drain_loop();
  EXPECT_TRUE(line_->ends());
  expect_no_orphans();
}

TEST_F(TaskEscapeTest, a_killed_minder_costs_no_other_task) {
  LifeLine other_line(path_of("other-line"));
  ASSERT_EQ(mkfifo(path_of("go").c_str(), 0600), 0);
  given_task("other", "exec 9>" + other_line.path() + "; echo up >&9; read go <" + path_of("go") +
                          "; exit 17");
  given_task("task", daemon() + "kill -9 $PPID; tail -f /dev/null");
  std::optional<ExecutionEnd> other_end;
  ExecutionCallbacks callbacks;
  callbacks.on_end = [&](const ExecutionEnd& end) { other_end = end; };
  const auto other =
      ExecutableRun::start(loop_, must_find("other"), options_for("other"), callbacks);
  ASSERT_TRUE(other.process) << other.error;
  ASSERT_EQ(other_line.next_line(), "up");
  EXPECT_EQ(end_of("task").kind, Kind::minder_lost);
  process_.reset();
  EXPECT_FALSE(other_end);
  std::ofstream(path_of("go")) << "go\n";
  turn_until([&] { return other_end.has_value(); });
  EXPECT_EQ(other_end->exit_code, 17);
}

TEST_F(TaskEscapeTest, a_task_that_stops_its_minder_is_ended_all_the_same) {
  given_task("task", daemon() + "kill -STOP $PPID; echo stopped >&9; tail -f /dev/null");
  start("task");
  wait_for_line("stopped");
  process_->kill();
  const ExecutionEnd end = wait_for_end();
  EXPECT_EQ(end.kind, Kind::signalled) << "its minder went on and told the status";
  EXPECT_EQ(end.stopped_by, StoppedBy::worker);
  EXPECT_TRUE(line_->ends());
}

// Then what is left goes to init, and the kernel alone can end the task itself.
TEST_F(TaskEscapeTest, a_task_dies_with_its_minder_though_nobody_adopts_it) {
  prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
  given_task("task", "exec 9>" + line_->path() + "; echo $PPID >&9; while :; do :; done");
  start("task");
  const auto minder = line_->next_line();
  ASSERT_TRUE(minder);
  ASSERT_EQ(::kill(std::stoi(*minder), SIGKILL), 0);
  EXPECT_TRUE(line_->ends());
  EXPECT_EQ(wait_for_end().kind, Kind::minder_lost);
}

TEST_F(TaskEscapeTest, a_task_that_stops_its_minder_again_and_again_is_ended_too) {
  given_task("task", daemon() +
                         "minder=$PPID\n( setsid sh -c 'while kill -STOP '$minder'; do :; "
                         "done' & )\necho stopping >&9; tail -f /dev/null");
  start("task");
  wait_for_line("stopping");
  process_->kill();
  EXPECT_EQ(wait_for_end().stopped_by, StoppedBy::worker);
  process_.reset();
  drain_loop();
  EXPECT_TRUE(line_->ends());
  expect_no_orphans();
}

}  // namespace
}  // namespace pulse
