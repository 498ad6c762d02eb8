// Starting one executable: which file it is, and what it starts with.
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <sstream>

#include "task/supervised/fd_limit.hpp"
#include "task_bench.hpp"

namespace pulse {
namespace {

class TaskStartTest : public TaskBench {};

// Past the C library, which refuses to change the signals it uses itself.
sighandler_t exchange_handler(int signal, sighandler_t handler) {
  struct {
    sighandler_t handler;
    unsigned long rest[3];
  } wanted{handler, {}}, before{};
  EXPECT_EQ(syscall(SYS_rt_sigaction, signal, &wanted, &before, 8), 0);
  return before.handler;
}

TEST_F(TaskStartTest, a_text_file_without_an_interpreter_is_not_started) {
  const std::string path = path_of("tasks/text");
  std::ofstream(path) << "echo hello\n";
  ASSERT_EQ(chmod(path.c_str(), 0755), 0);
  const ExecutionEnd end = end_of("text");
  EXPECT_EQ(end.kind, Kind::not_started);
  EXPECT_FALSE(end.is_transient);
  EXPECT_NE(end.error.find("begins with #!"), std::string::npos) << end.error;
}

TEST_F(TaskStartTest, a_missing_interpreter_is_told) {
  given_task("old", "#!/nowhere/interpreter\n");
  const ExecutionEnd end = end_of("old");
  EXPECT_EQ(end.kind, Kind::not_started);
  EXPECT_FALSE(end.is_transient);
  EXPECT_NE(end.error.find("interpreter"), std::string::npos) << end.error;
}

TEST_F(TaskStartTest, a_file_exchanged_after_it_was_checked_is_not_run) {
  given_task("swap", "exit 0");
  const Executable checked = must_find("swap");
  given_task("other", "echo planted >&2; exit 1");
  std::filesystem::rename(path_of("tasks/other"), path_of("tasks/swap"));
  start(checked, options_for("swap"));
  const ExecutionEnd end = wait_for_end();
  EXPECT_EQ(end.kind, Kind::not_started);
  EXPECT_TRUE(end.is_transient);
}

TEST_F(TaskStartTest, a_folder_exchanged_after_it_was_opened_does_not_count) {
  given_task("here", "exit 21");
  const Executable checked = must_find("here");
  std::filesystem::rename(folder_path(), path_of("moved"));
  given_task("here", "exit 22");
  start(checked, options_for("here"));
  EXPECT_EQ(wait_for_end().exit_code, 21);
}

TEST_F(TaskStartTest, a_program_is_run_like_a_script) {
  std::filesystem::copy_file("/bin/false", path_of("tasks/program"));
  EXPECT_EQ(end_of("program").exit_code, 1);
}

TEST_F(TaskStartTest, a_script_finds_its_neighbours) {
  given_task("sub/library", "#!/bin/false\nanswer=42", 0644);
  given_task("sub/script", ". \"$(dirname \"$0\")/library\"; exit $answer");
  EXPECT_EQ(end_of("sub/script").exit_code, 42);
}

TEST_F(TaskStartTest, stdin_is_the_document_and_then_ends) {
  given_task("copy", "cat");
  reads_stdout_ = true;
  TaskInput input;
  input.identifier = "copy";
  input.payload_json = R"({"n": 1.10, "big": 12345678901234567890123})";
  ExecutableOptions options = options_for("copy");
  options.stdin_text = task_stdin(input);
  start("copy", options);
  EXPECT_EQ(wait_for_end().kind, Kind::succeeded);
  EXPECT_EQ(stdout_, options.stdin_text);
  EXPECT_NE(stdout_.find("12345678901234567890123"), std::string::npos);
}

TEST_F(TaskStartTest, ten_megabytes_that_nobody_reads_are_no_trouble) {
  given_task("deaf", "exit 0");
  ExecutableOptions options = options_for("deaf");
  options.stdin_text.assign(10 * 1024 * 1024, 'x');
  start("deaf", options);
  EXPECT_EQ(wait_for_end().kind, Kind::succeeded);
}

TEST_F(TaskStartTest, the_task_starts_clean_whatever_this_process_is_like) {
  given_task("status", "#!/bin/sh\nulimit -Sc\npwd\nexec cat /proc/self/status /proc/self/stat");
  reads_stdout_ = true;
  sigset_t blocked;
  sigset_t before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR1);
  sigprocmask(SIG_BLOCK, &blocked, &before);
  // libuv itself resets the older ones, and the C library touches its own for nobody.
  const int ignored = SIGRTMIN + 3;
  constexpr int kOfTheLibrary = 32;
  std::signal(SIGHUP, SIG_IGN);
  std::signal(ignored, SIG_IGN);
  const auto library_before = exchange_handler(kOfTheLibrary, SIG_IGN);
  rlimit core_before{};
  getrlimit(RLIMIT_CORE, &core_before);
  const rlimit core{core_before.rlim_max, core_before.rlim_max};
  setrlimit(RLIMIT_CORE, &core);
  std::signal(SIGPIPE, SIG_IGN);
  start("status");
  std::signal(SIGPIPE, SIG_DFL);
  setrlimit(RLIMIT_CORE, &core_before);
  exchange_handler(kOfTheLibrary, library_before);
  std::signal(ignored, SIG_DFL);
  std::signal(SIGHUP, SIG_DFL);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  ASSERT_EQ(wait_for_end().kind, Kind::succeeded);

  std::istringstream lines(stdout_);
  std::string core_limit;
  std::string directory;
  std::getline(lines, core_limit);
  std::getline(lines, directory);
  std::map<std::string, std::string> status;
  std::string line;
  while (std::getline(lines, line) && line.find(":\t") != std::string::npos) {
    status[line.substr(0, line.find(":\t"))] = line.substr(line.find(":\t") + 2);
  }
  EXPECT_EQ(core_limit, "0");
  EXPECT_EQ(directory, std::filesystem::canonical(folder_path()));
  EXPECT_EQ(status["SigBlk"], "0000000000000000");
  EXPECT_EQ(status["SigIgn"], "0000000000000000");
  EXPECT_EQ(status["NoNewPrivs"], "1");
  // The last line read is /proc/self/stat: pid (command) state parent group session …
  std::istringstream stat(line.substr(line.rfind(')') + 1));
  std::string state;
  int parent = 0;
  int group = 0;
  int session = 0;
  stat >> state >> parent >> group >> session;
  EXPECT_EQ(std::to_string(group), status["Pid"]);
  EXPECT_EQ(std::to_string(session), status["Pid"]);
}

TEST_F(TaskStartTest, the_umask_and_the_hard_limit_on_dumps_are_those_of_this_process) {
  given_task("inherited", "#!/bin/sh\numask; ulimit -Hc");
  reads_stdout_ = true;
  rlimit core{};
  getrlimit(RLIMIT_CORE, &core);
  const std::string hard =
      core.rlim_max == RLIM_INFINITY ? "unlimited" : std::to_string(core.rlim_max / 512);
  const mode_t mask_before = umask(0027);
  start("inherited");
  umask(mask_before);
  ASSERT_EQ(wait_for_end().kind, Kind::succeeded);
  EXPECT_EQ(stdout_, "0027\n" + hard + "\n");
}

// A descriptor above 1023 is the death of a program that calls select().
TEST_F(TaskStartTest, descriptors_that_this_process_may_have_more_of_are_not_the_tasks) {
  given_task("limit", "ulimit -Sn; ulimit -Hn");
  reads_stdout_ = true;
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const rlimit low{64, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  const FdLimit files = raise_fd_limit(10);
  ExecutableOptions options = options_for("limit");
  options.rules.open_files = files.before;
  start("limit", options);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(files.before, 64U);
  EXPECT_EQ(files.now, std::min<rlim_t>(files.wanted, before.rlim_max));
  EXPECT_GT(files.now, 64U);
  ASSERT_EQ(wait_for_end().kind, Kind::succeeded);
  EXPECT_EQ(stdout_, "64\n" + std::to_string(before.rlim_max) + "\n");
}

TEST_F(TaskStartTest, a_higher_limit_on_descriptors_is_left_alone) {
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const FdLimit files = raise_fd_limit(0);
  EXPECT_EQ(files.now, before.rlim_cur);
  rlimit after{};
  getrlimit(RLIMIT_NOFILE, &after);
  EXPECT_EQ(after.rlim_cur, before.rlim_cur);
}

TEST_F(TaskStartTest, privileges_can_be_gained_only_where_that_is_allowed) {
  given_task("status", "exec grep NoNewPrivs /proc/self/status");
  reads_stdout_ = true;
  ExecutableOptions options = options_for("status");
  options.rules.may_gain_privileges = true;
  start("status", options);
  ASSERT_EQ(wait_for_end().kind, Kind::succeeded);
  // Somebody above may have forbidden it for all that is below.
  EXPECT_EQ(stdout_,
            "NoNewPrivs:\t" + std::to_string(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)) + "\n");
}

TEST_F(TaskStartTest, the_task_inherits_descriptors_0_to_3_and_no_more) {
  const UniqueFd leak(::open("/dev/null", O_RDONLY));  // not close-on-exec, on purpose
  const UniqueFd high(fcntl(leak.get(), F_DUPFD, 200));
  given_task("fds", "#!/bin/sh\nexec ls -l /proc/self/fd");
  reads_stdout_ = true;
  ASSERT_EQ(end_of("fds").kind, Kind::succeeded);
  std::istringstream lines(stdout_);
  std::vector<std::string> names;
  std::vector<std::string> targets;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t arrow = line.find(" -> ");
    if (arrow == std::string::npos) continue;
    names.push_back(
        line.substr(line.rfind(' ', arrow - 1) + 1, arrow - line.rfind(' ', arrow - 1) - 1));
    targets.push_back(line.substr(arrow + 4));
  }
  // The fifth is the directory that ls itself has open.
  EXPECT_EQ(names, (std::vector<std::string>{"0", "1", "2", "3", "4"}));
  ASSERT_EQ(targets.size(), 5U);
  EXPECT_TRUE(targets[4].starts_with("/proc/")) << targets[4];
}

TEST_F(TaskStartTest, the_environment_is_what_was_given_and_nothing_else) {
  given_task("environ", "#!/bin/sh\nexec env");
  reads_stdout_ = true;
  setenv("PGPASSWORD", "secret", 1);
  setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
  const ExecutableOptions options = options_for("environ");
  start("environ", options);
  unsetenv("PGPASSWORD");
  unsetenv("AWS_SECRET_ACCESS_KEY");
  ASSERT_EQ(wait_for_end().kind, Kind::succeeded);
  std::vector<std::string> seen;
  std::istringstream lines(stdout_);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("PWD=") && !line.starts_with("_=")) seen.push_back(line);  // the shell's
  }
  std::vector<std::string> given = options.environment;
  std::sort(given.begin(), given.end());
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(seen, given);
  EXPECT_EQ(stdout_.find("secret"), std::string::npos);
}

TEST_F(TaskStartTest, a_missing_minder_is_an_error_value) {
  given_task("good", "exit 0");
  ExecutableOptions options = options_for("good");
  options.minder_path = path_of("no-minder");
  const auto started = ExecutableRun::start(loop_, must_find("good"), options, {});
  EXPECT_FALSE(started.process);
  EXPECT_EQ(started.code, UV_ENOENT);
}

TEST_F(TaskStartTest, want_of_descriptors_is_an_error_value) {
  given_task("good", "exit 0");
  const Executable executable = must_find("good");
  NoDescriptors none;
  int failures = 0;
  // With each descriptor given back, the start comes one step further, until it succeeds.
  ExecutableRun::StartResult started;
  do {
    started = ExecutableRun::start(loop_, executable, options_for("good"), {});
    if (started.process) break;
    EXPECT_EQ(started.code, UV_EMFILE) << started.error;
    ++failures;
  } while (none.give_one_back());
  EXPECT_TRUE(started.process);
  EXPECT_GE(failures, 8);
}

}  // namespace
}  // namespace pulse
