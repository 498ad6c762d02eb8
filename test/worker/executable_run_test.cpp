// Running one executable: how its end and its output are told, and how it is ended.
#include "task/executable/run.hpp"

#include <csignal>

#include "log_capture.hpp"
#include "task/executable/starter.hpp"
#include "task_bench.hpp"

namespace pulse {
namespace {

using std::chrono::milliseconds;

class ExecutableRunTest : public TaskBench {};

TEST_F(ExecutableRunTest, exit_0_is_success) {
  given_task("good", "exit 0");
  const ExecutionEnd end = end_of("good");
  EXPECT_EQ(end.kind, Kind::succeeded);
  EXPECT_EQ(end.stopped_by, StoppedBy::nobody);
  EXPECT_EQ(end.error, "");
  EXPECT_FALSE(end.result);
}

TEST_F(ExecutableRunTest, every_other_exit_code_is_told_exactly) {
  given_task("code", "read line; exit $(printf %s \"$line\" | tr -cd 0-9)");
  for (int code = 1; code <= 255; ++code) {
    end_.reset();
    ExecutableOptions options = options_for("code");
    options.stdin_text = std::to_string(code) + "\n";
    start("code", options);
    const ExecutionEnd end = wait_for_end();
    EXPECT_EQ(end.kind, code == 100 ? Kind::failed_for_good : Kind::failed);
    EXPECT_EQ(end.exit_code, code);
    EXPECT_EQ(end.error, "exited with code " + std::to_string(code));
  }
}

TEST_F(ExecutableRunTest, a_signal_is_told_exactly) {
  given_task("signal", "read number; kill -$number $$; tail -f /dev/null");
  for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGABRT, SIGKILL, SIGSEGV, SIGPIPE, SIGTERM,
                           SIGUSR1, SIGXCPU, SIGSYS, SIGRTMIN + 1, SIGRTMAX}) {
    end_.reset();
    ExecutableOptions options = options_for("signal");
    options.stdin_text = std::to_string(signal) + "\n";
    start("signal", options);
    const ExecutionEnd end = wait_for_end();
    EXPECT_EQ(end.kind, Kind::signalled);
    EXPECT_EQ(end.signal, signal);
    EXPECT_TRUE(end.error.starts_with("ended by signal " + std::to_string(signal))) << end.error;
  }
}

TEST_F(ExecutableRunTest, the_tail_of_stderr_is_in_the_error) {
  given_task("loud", "echo first >&2; printf 'cannot \\377 go on\\000\\n' >&2; exit 3");
  EXPECT_EQ(end_of("loud").error,
            "exited with code 3: first\ncannot \xEF\xBF\xBD go on\xEF\xBF\xBD");
}

TEST_F(ExecutableRunTest, its_lines_go_to_the_log_and_what_it_says_on_stdout_may_be_the_error) {
  LogCapture capture;
  WrittenLog written(TaskOutputUse::log, loop_.timers(), capture.log());
  given_task("printer", "echo working; printf 'no disk'; exit 3");
  auto options = options_for("printer");
  options.written = &written;
  options.writer = {"printer", 7, 1};
  start("printer", options);
  EXPECT_EQ(wait_for_end().error, "exited with code 3: working\nno disk");
  const std::string text = capture.text();
  EXPECT_NE(text.find("job=7 task=printer attempt=1 stream=stdout text=working\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("stream=stdout text=\"no disk\"\n"), std::string::npos) << text;
}

TEST_F(ExecutableRunTest, stderr_comes_before_stdout_as_the_error) {
  LogCapture capture;
  WrittenLog written(TaskOutputUse::log, loop_.timers(), capture.log());
  given_task("both", "echo why >&2; echo chatter; exit 3");
  auto options = options_for("both");
  options.written = &written;
  start("both", options);
  EXPECT_EQ(wait_for_end().error, "exited with code 3: why");
  EXPECT_TRUE(capture.has("stream=stderr text=why\n"));
}

TEST_F(ExecutableRunTest, inherited_outputs_are_this_process_own) {
  LogCapture capture;
  WrittenLog written(TaskOutputUse::inherit, loop_.timers(), capture.log());
  given_task("who",
             "out=$(readlink /proc/$$/fd/1); err=$(readlink /proc/$$/fd/2)\n"
             "printf '%s\\n%s\\n' \"$out\" \"$err\" >" +
                 path_of("told") + "; exit 3");
  auto options = options_for("who");
  options.written = &written;
  testing::internal::CaptureStderr();
  start("who", options);
  EXPECT_EQ(wait_for_end().error, "exited with code 3");
  std::ifstream told(path_of("told"));
  for (const char* own : {"/proc/self/fd/1", "/proc/self/fd/2"}) {
    std::string line;
    std::getline(told, line);
    EXPECT_EQ(line, std::filesystem::read_symlink(own).string());
  }
  testing::internal::GetCapturedStderr();
}

TEST_F(ExecutableRunTest, what_is_left_is_told_with_the_end) {
  given_task("partly", "echo '{\"payload\":[1,2]}' >&3; echo '{\"payload\":[2]}' >&3; exit 1");
  EXPECT_EQ(end_of("partly").payload, "[2]");
}

TEST_F(ExecutableRunTest, a_flood_of_both_outputs_leaves_memory_bounded) {
  given_task("flood",
             "head -c 209715200 /dev/zero & head -c 209715200 /dev/zero >&2 & wait; exit 9");
  reads_stdout_ = true;
  const long peak_before = peak_kilobytes();
  const ExecutionEnd end = end_of("flood");
  EXPECT_EQ(end.exit_code, 9);
  EXPECT_EQ(stdout_bytes_, 209715200U);
  EXPECT_LE(end.error.size(), 8192U);
  EXPECT_LT(peak_kilobytes() - peak_before, kBoundedKilobytes);
}

TEST_F(ExecutableRunTest, stdout_that_nobody_wants_costs_nothing) {
  given_task("chatty", "head -c 209715200 /dev/zero; echo done >/dev/stdout");
  EXPECT_EQ(end_of("chatty").kind, Kind::succeeded);
  EXPECT_EQ(stdout_bytes_, 0U);
}

TEST_F(ExecutableRunTest, a_task_that_ignores_the_request_is_killed_after_the_grace) {
  LifeLine line(path_of("line"));
  given_task("deaf", "trap '' TERM; exec 9>" + line.path() + "; echo up >&9; tail -f /dev/null");
  start("deaf");
  ASSERT_EQ(line.next_line(), "up");
  const auto told = BootClock::now();
  process_->terminate(milliseconds(150));
  const ExecutionEnd end = wait_for_end();
  EXPECT_EQ(end.kind, Kind::signalled);
  EXPECT_EQ(end.signal, SIGKILL);
  EXPECT_EQ(end.stopped_by, StoppedBy::worker);
  EXPECT_GE(BootClock::now() - told, milliseconds(150));
  EXPECT_TRUE(line.ends());
}

TEST_F(ExecutableRunTest, a_task_may_end_well_when_it_is_asked_to) {
  LifeLine line(path_of("line"));
  given_task("polite", "trap 'echo \"{\\\"result\\\":\\\"half\\\"}\" >&3; exit 0' TERM; exec 9>" +
                           line.path() + "; echo up >&9; tail -f /dev/null & wait");
  start("polite");
  ASSERT_EQ(line.next_line(), "up");
  process_->terminate(std::chrono::seconds(30));
  const ExecutionEnd end = wait_for_end();
  EXPECT_EQ(end.kind, Kind::succeeded);
  EXPECT_EQ(end.stopped_by, StoppedBy::worker);
  EXPECT_EQ(end.result, "\"half\"");
}

TEST_F(ExecutableRunTest, a_stopped_task_is_ended_too) {
  LifeLine line(path_of("line"));
  given_task("stopped", "exec 9>" + line.path() + "; echo up >&9; kill -STOP $$");
  start("stopped");
  ASSERT_EQ(line.next_line(), "up");
  process_->terminate(std::chrono::seconds(30));
  EXPECT_EQ(wait_for_end().signal, SIGTERM);
}

TEST_F(ExecutableRunTest, a_later_order_brings_the_kill_forward) {
  LifeLine line(path_of("line"));
  given_task("deaf", "trap '' TERM; exec 9>" + line.path() + "; echo up >&9; tail -f /dev/null");
  start("deaf");
  ASSERT_EQ(line.next_line(), "up");
  process_->terminate(std::chrono::hours(1));
  process_->kill();
  EXPECT_EQ(wait_for_end().signal, SIGKILL);
}

TEST_F(ExecutableRunTest, progress_is_merged_and_its_rest_comes_before_the_end) {
  ASSERT_EQ(mkfifo(path_of("go").c_str(), 0600), 0);
  given_task("steps",
             "echo '{\"progress\":0.1,\"stage\":\"load\"}' >&3; read go <" + path_of("go") +
                 "\nfor i in 2 3 4 5 6 7 8 9; do echo \"{\\\"progress\\\":0.$i}\" >&3; done\n"
                 "echo '{\"checkpoint\":{\"row\":1.50}}' >&3\n"
                 "echo 'not json' >&3\n"
                 "echo '{\"result\":1}' >&3; echo '{\"result\":{\"rows\":2}}' >&3");
  start("steps");
  turn_until([&] { return !progress_.empty(); });
  EXPECT_EQ(progress_.front().fraction, 0.1);
  EXPECT_EQ(progress_.front().stage, "load");
  std::ofstream(path_of("go")) << "go\n";
  const ExecutionEnd end = wait_for_end();
  EXPECT_EQ(end.kind, Kind::succeeded);
  EXPECT_EQ(end.result, R"({"rows":2})");
  EXPECT_EQ(end.dropped_lines, 1U);
  EXPECT_EQ(progress_.back().fraction, 0.9);
  EXPECT_EQ(progress_.back().checkpoint, R"({"row":1.50})");
}

TEST_F(ExecutableRunTest, progress_comes_while_the_task_runs_once_a_second) {
  given_task("alive", "echo '{\"progress\":0.5}' >&3; read go <" + path_of("go") +
                          "; echo '{\"progress\":0.6}' >&3; tail -f /dev/null");
  ASSERT_EQ(mkfifo(path_of("go").c_str(), 0600), 0);
  start("alive");
  turn_until([&] { return !progress_.empty(); });
  const auto first = BootClock::now();
  std::ofstream(path_of("go")) << "go\n";
  turn_until([&] { return progress_.size() == 2; });
  // Less than a second: it came a moment before it was seen.
  EXPECT_GE(BootClock::now() - first, milliseconds(500));
  EXPECT_EQ(progress_.back().fraction, 0.6);
  EXPECT_FALSE(end_);
  process_->kill();
  wait_for_end();
}

TEST_F(ExecutableRunTest, a_flood_of_lines_makes_the_task_wait_and_not_the_loop) {
  given_task("lines",
             "yes '{\"progress\":0.5,\"message\":\"again and again and again\"}' | "
             "head -c " +
                 std::to_string(kFloodBytes) + " >&3");
  const long peak_before = peak_kilobytes();
  const auto began = BootClock::now();
  EXPECT_EQ(end_of("lines").kind, Kind::succeeded);
  // One megabyte in a tenth of a second: the task cannot have been faster.
  EXPECT_GE(BootClock::now() - began, std::chrono::seconds(1));
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(BootClock::now() - began).count();
  EXPECT_LE(progress_.size(), static_cast<std::size_t>(seconds) + 1);
  EXPECT_LT(peak_kilobytes() - peak_before, kBoundedKilobytes);
}

TEST_F(ExecutableRunTest, a_late_loop_loses_no_result) {
  // More than is read in one window, so that the rest waits in the pipe when the task ends.
  given_task("late", "yes '{\"progress\":0.5}' | head -c 1080000 >&3; echo '\n{\"result\":8}' >&3");
  uv_check_t lateness;
  uv_check_init(loop_.uv(), &lateness);
  uv_check_start(&lateness, [](uv_check_t*) {
    const auto until = BootClock::now() + milliseconds(150);
    while (BootClock::now() < until) {
    }
  });
  EXPECT_EQ(end_of("late").result, "8");
  uv_close(reinterpret_cast<uv_handle_t*>(&lateness), nullptr);
  process_.reset();
  drain_loop();  // `lateness` must be closed before it goes out of scope
}

TEST_F(ExecutableRunTest, reading_ends_though_somebody_else_holds_the_pipes) {
  LifeLine line(path_of("line"));
  given_task("holder", "exec 9>" + line.path() + "; echo $$ >&9; exec 9>&-; read go <" +
                           path_of("go") + "; echo '{\"result\":5}' >&3; exit 0");
  ASSERT_EQ(mkfifo(path_of("go").c_str(), 0600), 0);
  start("holder");
  const std::string task = *line.next_line();
  // Held by this process, which no minder kills.
  const UniqueFd pulse_fd(::open(("/proc/" + task + "/fd/3").c_str(), O_WRONLY | O_CLOEXEC));
  const UniqueFd error_fd(::open(("/proc/" + task + "/fd/2").c_str(), O_WRONLY | O_CLOEXEC));
  ASSERT_TRUE(pulse_fd.valid() && error_fd.valid());
  const auto let_go = BootClock::now();
  std::ofstream(path_of("go")) << "go\n";
  const ExecutionEnd end = wait_for_end();
  EXPECT_EQ(end.kind, Kind::succeeded);
  EXPECT_EQ(end.result, "5");
  EXPECT_GE(BootClock::now() - let_go, milliseconds(99));  // the loop counts whole ones
}

TEST_F(ExecutableRunTest, the_object_may_be_destroyed_in_its_own_callback) {
  given_task("short", "exit 4");
  const Executable executable = must_find("short");
  int code = 0;
  ExecutionCallbacks callbacks;
  callbacks.on_end = [&](const ExecutionEnd& end) {
    code = end.exit_code;
    process_.reset();
  };
  auto started = ExecutableRun::start(loop_, executable, options_for("short"), callbacks);
  ASSERT_TRUE(started.process) << started.error;
  process_ = std::move(started.process);
  turn_until([&] { return code != 0; });
  EXPECT_EQ(code, 4);
  EXPECT_FALSE(process_);
}

TEST_F(ExecutableRunTest, destroying_the_object_ends_the_task_without_a_word) {
  LifeLine line(path_of("line"));
  given_task("long", "exec 9>" + line.path() + "; echo up >&9; tail -f /dev/null");
  start("long");
  ASSERT_EQ(line.next_line(), "up");
  process_.reset();
  EXPECT_TRUE(line.ends());
  EXPECT_FALSE(end_);
}

// Trying again cannot help, and a signal would end the worker.
TEST_F(ExecutableRunTest, a_payload_beyond_the_limit_on_files_fails_its_job) {
  given_task("big", "exit 0");
  std::signal(SIGXFSZ, SIG_IGN);  // as main does
  LogCapture capture;
  WrittenLog written(TaskOutputUse::discard, loop_.timers(), capture.log());
  const char* inherited[] = {nullptr};
  const TaskVariables variables({}, "", inherited);
  ServedFolder folder(folder_path());
  const StartExecution start =
      executable_starter({loop_, folder, PULSE_MINDER_PATH, {}, variables, written, [] {}});
  HeldJob job;
  job.job.input.identifier = "big";
  job.job.input.payload_json = '"' + std::string(10'000, 'x') + '"';
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{1'000, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  const ExecutionStart started = start(job, Registration{}, BootClock::now(), {});
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_FALSE(started.execution);
  EXPECT_FALSE(started.is_transient);
  EXPECT_NE(started.error.find("file too large"), std::string::npos) << started.error;
}

}  // namespace
}  // namespace pulse
