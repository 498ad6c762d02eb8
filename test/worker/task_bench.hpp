// What the tests of executable tasks stand on: a tasks folder of their own, a real loop with a
// limit on every wait, and FIFOs whose end of file tells that the last holder is gone.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/loop/boot_clock.hpp"
#include "base/loop/event_loop.hpp"
#include "base/loop/unique_fd.hpp"
#include "jobs/execution_report.hpp"
#include "no_descriptors.hpp"
#include "task/executable/environment.hpp"
#include "task/executable/run.hpp"
#include "task/executable/tasks_folder.hpp"

namespace pulse {

using Kind = ExecutionEnd::Kind;
using StoppedBy = ExecutionEnd::StoppedBy;

constexpr std::chrono::seconds kTestLimit{60};

// The most memory this process ever had; only growth says something.
inline long peak_kilobytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

// What a flood may add to it. A sanitizer keeps what was freed, so there it says nothing; and it
// reads a flood slowly.
#ifdef PULSE_SANITIZED
constexpr long kBoundedKilobytes = 1024L * 1024;
constexpr int kFloodBytes = 11'000'000;
#else
constexpr long kBoundedKilobytes = 16L * 1024;
constexpr int kFloodBytes = 20'000'000;
#endif

// Waits until there is something to read or the end of it.
inline bool is_readable_within(int fd, std::chrono::milliseconds limit) {
  const auto deadline = BootClock::now() + limit;
  for (;;) {
    const auto rest = std::chrono::ceil<std::chrono::milliseconds>(deadline - BootClock::now());
    pollfd ready{fd, POLLIN, 0};
    const int count = poll(&ready, 1, static_cast<int>(std::max(rest.count(), std::int64_t{0})));
    if (count >= 0 || errno != EINTR) return count > 0;  // libuv's SIGCHLD interrupts
  }
}

// One end of a FIFO that tasks open by name for writing. Nothing but the holders keeps it open.
class LifeLine {
 public:
  explicit LifeLine(const std::string& path) : path_(path) {
    EXPECT_EQ(mkfifo(path.c_str(), 0600), 0);
    reader_.reset(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    EXPECT_TRUE(reader_.valid());
  }

  [[nodiscard]] const std::string& path() const { return path_; }

  // The next line a holder wrote; nothing when all holders are gone or the limit has passed.
  std::optional<std::string> next_line() {
    std::string line;
    for (char character = 0; read_one(character);) {
      if (character == '\n') return line;
      line += character;
    }
    return std::nullopt;
  }

  // True once every holder is gone: only after one has written a line is this the end of file.
  bool ends() {
    char character = 0;
    while (read_one(character)) {
    }
    return is_at_end_;
  }

 private:
  bool read_one(char& character) {
    if (!is_readable_within(reader_.get(), kTestLimit)) return false;
    const ssize_t size = ::read(reader_.get(), &character, 1);
    is_at_end_ = size == 0;
    return size == 1;
  }

  std::string path_;
  UniqueFd reader_;
  bool is_at_end_ = false;
};

class TaskBench : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = std::filesystem::temp_directory_path() / "pulse-task-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    place_ = pattern;
    std::filesystem::create_directory(place_ / "tasks");
    own_handles_ = handles();
  }

  void TearDown() override {
    process_.reset();
    drain_loop();  // so each test checks that every minder is reaped
    std::filesystem::remove_all(place_);
  }

  std::string folder_path() const { return place_ / "tasks"; }
  std::string path_of(const std::string& name) const { return place_ / name; }

  // A task of the folder: a shell script unless `text` says otherwise by its first line.
  void given_task(const std::string& name, const std::string& text, mode_t mode = 0755) {
    const std::string path = place_ / "tasks" / name;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path) << (text.starts_with("#!") ? "" : "#!/bin/sh\n") << text << '\n';
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
  }

  Executable must_find(const std::string& name) {
    TaskRefusal refusal;
    auto folder = TasksFolder::open(folder_path(), refusal);
    EXPECT_TRUE(folder) << refusal.reason;
    auto executable = folder->find(name, refusal);
    EXPECT_TRUE(executable) << refusal.reason;
    return std::move(executable).value_or(Executable{});
  }

  // What the next start uses; a test changes what it is about.
  ExecutableOptions options_for(const std::string& name) {
    TaskInput input;
    input.job_id = 7;
    input.token = 11;
    input.identifier = name;
    ExecutableOptions options;
    options.minder_path = PULSE_MINDER_PATH;
    options.ping_limit = kTestLimit;
    options.environment = task_environment(input, environ);
    options.stdin_text = task_stdin(input);
    return options;
  }

  void start(const std::string& name) { start(name, options_for(name)); }
  void start(const std::string& name, ExecutableOptions options) {
    start(must_find(name), std::move(options));
  }
  void start(const Executable& executable, ExecutableOptions options) {
    ExecutionCallbacks callbacks;
    callbacks.on_progress = [this](const TaskProgress& progress) { progress_.push_back(progress); };
    callbacks.on_end = [this](const ExecutionEnd& end) {
      EXPECT_FALSE(end_) << "a second end";
      end_ = end;
    };
    if (reads_stdout_) {
      callbacks.on_stdout = [this](std::string_view bytes) {
        stdout_bytes_ += bytes.size();
        if (stdout_.size() < kKeptStdout) stdout_ += bytes;
      };
    }
    auto started =
        ExecutableRun::start(loop_, executable, std::move(options), std::move(callbacks));
    ASSERT_TRUE(started.process) << started.error;
    process_ = std::move(started.process);
  }

  // Turns the loop until `state` holds; fails the test when that takes too long.
  void turn_until(const std::function<bool()>& state) {
    bool is_late = false;
    Timer limit(loop_.timers(), [&] { is_late = true; });
    limit.start_in(kTestLimit);
    while (!is_late && !state()) uv_run(loop_.uv(), UV_RUN_ONCE);
    ASSERT_FALSE(is_late) << "the state did not come";
  }
  // Turns the loop until it has no handle but its own: each minder is reaped then.
  void drain_loop() {
    turn_until([this] { return handles() == own_handles_; });
  }
  int handles() {
    int count = 0;
    uv_walk(
        loop_.uv(), [](uv_handle_t*, void* counted) { ++*static_cast<int*>(counted); }, &count);
    return count;
  }

  ExecutionEnd end_of(const std::string& name) {
    start(name);
    return wait_for_end();
  }
  ExecutionEnd wait_for_end() {
    turn_until([this] { return end_.has_value(); });
    return end_.value_or(ExecutionEnd{});
  }

  static constexpr std::size_t kKeptStdout = 1024 * 1024;

  std::filesystem::path place_;
  const SystemClock clock_;
  EventLoop loop_{clock_};
  int own_handles_ = 0;
  bool reads_stdout_ = false;
  std::unique_ptr<ExecutableRun> process_;
  std::vector<TaskProgress> progress_;
  std::optional<ExecutionEnd> end_;
  std::string stdout_;
  std::size_t stdout_bytes_ = 0;
};

}  // namespace pulse
