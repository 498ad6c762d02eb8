// Process child: one child process that runs jobs, under a minder (see SupervisedChild): lines go
// in and come out at the child's stdin and stdout, or at a socket. line.hpp knows their meaning.
//
// Invariants (only the loop's thread reads and writes):
// - on_line comes while the pipe is read, so the object must live on; the other callbacks come from
//   timers.
// - `output_` holds the bytes to write, and the first `written_` of them are written.
// - Memory is bounded by the bytes written to a child that does not read (see is_reading()), and
// one
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

// Where the lines go in and come out.
enum class LineChannel {
  stdio,   // stdin and stdout
  socket,  // the child's descriptor 3, both ways; what the child prints goes to the log
};

struct ProcessLimits {
  std::string minder_path;
  minder::TaskRules rules;
  Duration silence_grace{};  // see ExecutableOptions
  TimePoint deadline{};      // the first; see set_deadline()
  std::vector<std::string> environment;
  WrittenLog* written = nullptr;  // see ExecutableOptions; of stdio only stderr
  WrittenLines::Writer writer;    // in the log
  LineChannel channel = LineChannel::stdio;
};

class ProcessChild {
 public:
  static constexpr std::size_t kMaxLineBytes = std::size_t{1024} * 1024;
  static constexpr std::size_t kMaxBacklog = std::size_t{1024} * 1024;

  struct Listener {
    std::function<void(std::string_view)> on_line;
    // The worker cannot talk to the child any more; the listener ends the child.
    std::function<void(const std::string& why)> on_fault;
    // The child has ended, and each line of the child was told. May destroy the object.
    std::function<void(ExecutionEnd)> on_end;
    // The beginning of a line that is too long, and is skipped; where unset, such a line is a
    // fault.
    std::function<void(std::string_view)> on_long_line = {};
  };

  ProcessChild(EventLoop& loop, const ProcessCommand& command, Listener listener);
  ProcessChild(const ProcessChild&) = delete;
  ProcessChild& operator=(const ProcessChild&) = delete;

  // Once. On failure returns the end of the child, and on_end does not come.
  std::optional<ExecutionEnd> start(const ProcessLimits& limits);

  // The next flush() writes the bytes appended here.
  std::string& to_write() { return output_; }
  void flush();
  // A child that does not read its lines is to get no more.
  bool is_reading() const { return backlog() < kMaxBacklog; }
  // End of file for the child, behind the bytes that wait.
  void close_input();

  // When the minder ends the child, unless a later deadline comes.
  void set_deadline(TimePoint deadline) noexcept { child_.set_deadline(deadline); }
  // SIGTERM now, SIGKILL after `grace`.
  void terminate(Duration grace) noexcept { child_.terminate(grace); }

  // `error`, and behind it the child's last lines on stderr since forget_errors().
  std::string with_errors(std::string error) const { return child_.with_errors(std::move(error)); }
  void forget_errors() { child_.forget_errors(); }

 private:
  // The child's ends of the pipes, until the child has them.
  struct ChildEnds {
    UniqueFd input, output, errors, socket;
  };

  // The bytes that wait because the child does not read.
  std::size_t backlog() const { return output_.size() - written_; }
  int open_pipes_and_start(MinderLine::Plan& plan, const ProcessLimits& limits);
  int open_socket(SupervisedChild::Pipes& pipes, ChildEnds& ends);
  int open_stdio(SupervisedChild::Pipes& pipes, ChildEnds& ends);
  int open_output(SupervisedChild::Pipes& pipes, ChildEnds& ends, const ProcessLimits& limits);
  void close_input_now();
  void take_bytes(std::string_view bytes);
  void take_long_line(const std::string& beginning);
  void take_speech_closed();
  void await_writable();
  void fail(std::string why);
  void finish(ExecutionEnd end);

  EventLoop& loop_;
  const ProcessCommand& command_;
  const Listener listener_;
  SupervisedChild child_;
  LineChannel channel_ = LineChannel::stdio;
  UniqueFd input_;                  // the child's lines to read
  LoopHandle<uv_poll_t> writable_;  // closed before input_
  std::string output_;
  std::size_t written_ = 0;  // of output_
  bool is_last_output_ = false;
  std::string partial_;  // the line that has begun
  bool is_deaf_ = false;
  bool is_skipping_ = false;  // the rest of a long line
  std::optional<WrittenLines> lines_;
  std::string fault_;
  Timer faulty_;
};

}  // namespace pulse
