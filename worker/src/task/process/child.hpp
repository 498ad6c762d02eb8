// Process child: one child process that runs jobs, under a minder (see SupervisedChild): lines go
// in at the child's stdin and come out at the child's stdout. process_line.hpp knows the meaning of
// the lines.
//
// Invariants; only the loop's thread reads and writes:
// - on_line comes while the pipe is read, so the object must live on; the other callbacks come from
//   timers.
// - `output_` holds the bytes to write, and the first `written_` bytes of `output_` are written.
// - Memory is bounded by the bytes written to a child that does not read (see backlog()), and one
//   line of 1 MB.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/loop/duration.hpp"
#include "task/executable/written_lines.hpp"
#include "task/process/command.hpp"
#include "task/supervised/child.hpp"

namespace pulse {

struct ProcessLimits {
  std::string minder_path;
  minder::TaskRules rules;
  Duration silence_grace{};            // see ExecutableOptions
  TimePoint deadline{};                // the first; see set_deadline()
  std::vector<std::string> variables;  // besides the inherited variables
  WrittenLog* written = nullptr;       // see ExecutableOptions; stdout is for answers
};

class ProcessChild {
 public:
  static constexpr std::size_t kMaxLineBytes = std::size_t{1024} * 1024;

  struct Listener {
    std::function<void(std::string_view)> on_line;
    // The worker cannot talk to the child any more; the listener ends the child.
    std::function<void(const std::string& why)> on_fault;
    // The child has ended, and each line of the child was told. May destroy the object.
    std::function<void(ExecutionEnd)> on_end;
  };

  ProcessChild(EventLoop& loop, const ProcessCommand& command, Listener listener);
  ProcessChild(const ProcessChild&) = delete;
  ProcessChild& operator=(const ProcessChild&) = delete;

  // Once. On failure returns the end of the child, and on_end does not come.
  std::optional<ExecutionEnd> start(const ProcessLimits& limits);

  // The next flush() writes the bytes appended here.
  std::string& to_write() { return output_; }
  void flush();
  // The bytes that wait because the child does not read.
  std::size_t backlog() const { return output_.size() - written_; }
  // End of file for the child, behind the bytes that wait.
  void close_stdin();

  // When the minder ends the child, unless a later deadline comes.
  void set_deadline(TimePoint deadline) noexcept { child_.set_deadline(deadline); }
  // SIGTERM now, SIGKILL after `grace`.
  void terminate(Duration grace) noexcept { child_.terminate(grace); }

  // `error`, and behind `error` the child's last lines on stderr since forget_errors().
  std::string with_errors(std::string error) const { return child_.with_errors(std::move(error)); }
  void forget_errors() { child_.forget_errors(); }

 private:
  int open_pipes_and_start(MinderLine::Plan& plan, const ProcessLimits& limits);
  void take_bytes(std::string_view bytes);
  void take_stdout_closed();
  void await_writable();
  void fail(std::string why);
  void finish(ExecutionEnd end);

  EventLoop& loop_;
  const ProcessCommand& command_;
  const Listener listener_;
  SupervisedChild child_;
  UniqueFd stdin_;
  LoopHandle<uv_poll_t> writable_;  // closed before stdin_
  std::string output_;
  std::size_t written_ = 0;  // of output_
  bool is_last_output_ = false;
  std::string partial_;  // the line that has begun
  bool is_deaf_ = false;
  std::optional<WrittenLines> lines_;
  std::string fault_;
  Timer faulty_;
};

}  // namespace pulse
