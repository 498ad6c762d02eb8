// What executables and persistent processes share: pipes, the end, and what comes between them.
#include "task/supervised/child.hpp"

#include "task/executable/stdio.hpp"
#include "task_bench.hpp"

namespace pulse {
namespace {

using std::chrono::milliseconds;

class SupervisedChildTest : public TaskBench {
 protected:
  void TearDown() override {
    child_.reset();
    TaskBench::TearDown();
  }

  // Runs a shell script whose descriptor 3 is its speech.
  void given_child(const std::string& script, std::size_t window_bytes = 1'000'000) {
    given_task("child", script);
    const Executable executable = must_find("child");
    const ExecutableOptions options = options_for("child");
    TaskStdio stdio;
    ASSERT_EQ(stdio.open("", TaskStdio::Output::read), 0);
    MinderLine::Plan plan;
    plan.minder_path = options.minder_path;
    plan.arguments = {"7", "200", executable.path};
    plan.environment = options.environment;
    plan.stdin_fd = stdio.stdin_fd.get();
    plan.stdout_fd = stdio.stdout_fd.get();
    plan.stderr_fd = stdio.stderr_fd.get();
    plan.pulse_fd = stdio.pulse_fd.get();
    plan.directory_fd = executable.directory.get();
    plan.file_fd = executable.file.get();
    plan.work_directory_fd = executable.folder.get();
    plan.patience = milliseconds(200);
    child_ = std::make_unique<SupervisedChild>(loop_, window_bytes, listener());
    ASSERT_EQ(child_->start(std::move(plan), executable.path, BootClock::now() + kTestLimit,
                            {std::move(stdio.pulse_reader), std::move(stdio.stderr_reader),
                             std::move(stdio.stdout_reader)}),
              0);
  }

  SupervisedChild::Listener listener() {
    SupervisedChild::Listener listener;
    listener.on_speech = [this](std::string_view bytes) {
      EXPECT_FALSE(told_) << "speech after the end";
      speech_bytes_ += bytes.size();
      if (speech_.size() < kKeptStdout) speech_ += bytes;
    };
    listener.on_speech_closed = [this] { is_speech_closed_ = true; };
    listener.on_output = [this](std::string_view bytes) { stdout_ += bytes; };
    listener.on_end = [this](ExecutionEnd end) {
      EXPECT_FALSE(told_) << "a second end";
      told_ = std::move(end);
    };
    return listener;
  }

  ExecutionEnd wait_for_told_end() {
    turn_until([this] { return told_.has_value(); });
    return told_.value_or(ExecutionEnd{});
  }

  std::unique_ptr<SupervisedChild> child_;
  std::string speech_;
  std::size_t speech_bytes_ = 0;
  bool is_speech_closed_ = false;
  std::optional<ExecutionEnd> told_;
};

TEST_F(SupervisedChildTest, a_minder_that_was_stopped_goes_on_with_the_next_ping) {
  given_child("kill -STOP $PPID; echo stopped >&3; exit 3");
  turn_until([this] { return speech_ == "stopped\n"; });
  EXPECT_FALSE(told_);
  child_->set_deadline(BootClock::now() + kTestLimit);
  EXPECT_EQ(wait_for_told_end().exit_code, 3);
}

TEST_F(SupervisedChildTest, the_end_comes_after_everything_that_was_said) {
  given_child("echo speech >&3; echo output; echo error >&2; exit 3");
  const ExecutionEnd end = wait_for_told_end();
  EXPECT_EQ(end.exit_code, 3);
  EXPECT_EQ(speech_, "speech\n");
  EXPECT_EQ(stdout_, "output\n");
  EXPECT_EQ(child_->with_errors(end.error), "exited with code 3: error");
  EXPECT_TRUE(child_->has_ended());
}

TEST_F(SupervisedChildTest, errors_that_were_forgotten_are_in_no_text) {
  ASSERT_EQ(mkfifo(path_of("go").c_str(), 0600), 0);
  given_child("echo old >&2; echo said >&3; read line <" + path_of("go") + "; echo new >&2");
  turn_until([this] { return child_->with_errors("") == ": old"; });
  child_->forget_errors();
  std::ofstream(path_of("go")) << "go\n";
  wait_for_told_end();
  EXPECT_EQ(child_->with_errors("why"), "why: new");
}

TEST_F(SupervisedChildTest, an_error_and_what_follows_it_fit_into_eight_kilobytes) {
  given_child("yes error | head -c 24000 >&2");
  wait_for_told_end();
  const std::string text = child_->with_errors(std::string(20000, 'x'));
  EXPECT_LE(text.size(), StderrTail::kMaxBytes);
  EXPECT_TRUE(text.ends_with("error"));
}

TEST_F(SupervisedChildTest, no_more_speech_is_read_in_a_tenth_of_a_second_than_the_window) {
  constexpr std::size_t kWindow = 100'000;
  constexpr std::size_t kReadAtOnce = 65'536;
  ASSERT_EQ(mkfifo(path_of("go").c_str(), 0600), 0);
  given_child("yes | head -c 1000000 >&3; read line <" + path_of("go"), kWindow);
  const auto began = BootClock::now();
  turn_until([this] { return speech_bytes_ >= 1'000'000; });
  const auto windows = 1'000'000 / (kWindow + kReadAtOnce);
  EXPECT_GE(BootClock::now() - began, windows * milliseconds(100));
  std::ofstream(path_of("go")) << "go\n";
  EXPECT_EQ(wait_for_told_end().kind, Kind::succeeded);
}

TEST_F(SupervisedChildTest, speech_that_is_closed_before_the_end_is_told) {
  ASSERT_EQ(mkfifo(path_of("go").c_str(), 0600), 0);
  given_child("exec 3>&-; read line <" + path_of("go"));
  turn_until([this] { return is_speech_closed_; });
  EXPECT_FALSE(child_->has_ended());
  std::ofstream(path_of("go")) << "go\n";
  EXPECT_EQ(wait_for_told_end().kind, Kind::succeeded);
}

TEST_F(SupervisedChildTest, its_pid_is_known_once_it_has_been_executed) {
  ASSERT_EQ(mkfifo(path_of("go").c_str(), 0600), 0);
  given_child("echo $$ >&3; read line <" + path_of("go"));
  turn_until([this] { return child_->pid().has_value() && speech_.ends_with('\n'); });
  EXPECT_EQ(std::to_string(*child_->pid()) + "\n", speech_);
  std::ofstream(path_of("go")) << "go\n";
  wait_for_told_end();
}

TEST_F(SupervisedChildTest, a_lost_minder_that_was_told_to_end_it_has_stopped_it) {
  ASSERT_EQ(mkfifo(path_of("go").c_str(), 0600), 0);
  given_child("echo $PPID >&3; trap '' TERM; while :; do read line <" + path_of("go") + "; done");
  turn_until([this] { return speech_.ends_with('\n'); });
  child_->terminate(kTestLimit);
  ASSERT_EQ(::kill(std::stoi(speech_), SIGKILL), 0);
  const ExecutionEnd end = wait_for_told_end();
  EXPECT_EQ(end.kind, Kind::minder_lost);
  EXPECT_EQ(end.stopped_by, StoppedBy::worker);
}

TEST_F(SupervisedChildTest, nothing_is_told_after_hanging_up) {
  LifeLine line(path_of("line"));
  given_child("exec 9>" + line.path() + "; echo up >&9; while echo speech >&3; do :; done");
  ASSERT_EQ(line.next_line(), "up");
  child_->hang_up();
  drain_loop();
  EXPECT_TRUE(line.ends());
  EXPECT_FALSE(told_);
  EXPECT_EQ(speech_, "");
}

}  // namespace
}  // namespace pulse
