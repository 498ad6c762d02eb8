// One child process that runs jobs, under a minder: lines go in at its stdin and come out at its
// stdout. What the lines mean is not known here.
//
// Everything belongs to the loop's thread and nothing blocks. on_line comes while the pipe is read:
// the object must live on; the other callbacks come from timers. Memory is bounded by what is
// written to a child that does not read (see backlog()), one line of 1 MB and 16 kB of stderr.
//
// Destroying it hangs up: no callback comes any more, and the minder ends what is left.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "loop/duration.hpp"
#include "loop/event_loop.hpp"
#include "process/process_command.hpp"
#include "supervised/exit_status.hpp"
#include "supervised/minder_line.hpp"
#include "supervised/pipe_reader.hpp"
#include "text/stderr_tail.hpp"

namespace pulse {

struct ProcessLimits {
  std::string minder_path;
  minder::TaskRules rules;
  Duration silence_grace{};  // see ExecutableOptions
  TimePoint deadline{};      // the first; see set_deadline()
};

class ProcessChild {
 public:
  static constexpr std::size_t kMaxLineBytes = std::size_t{1024} * 1024;

  struct Listener {
    std::function<void(std::string_view)> on_line;
    // It cannot be talked to any more; end it.
    std::function<void(const std::string& why)> on_fault;
    // It has ended, and everything it said was told. May destroy the object.
    std::function<void(ExecutionEnd)> on_end;
  };

  ProcessChild(EventLoop& loop, const ProcessCommand& command, Listener listener);
  ProcessChild(const ProcessChild&) = delete;
  ProcessChild& operator=(const ProcessChild&) = delete;
  ~ProcessChild();

  // Once. On failure the end that it has, and on_end does not come.
  std::optional<ExecutionEnd> start(const ProcessLimits& limits);

  // What is appended here is written by the next flush().
  std::string& to_write() { return output_; }
  void flush();
  // What waits to be written because the child does not read.
  std::size_t backlog() const { return output_.size() - written_; }
  // End of file for the child, behind what waits.
  void close_stdin();

  // When the minder ends it, unless a later one comes.
  void set_deadline(TimePoint deadline) noexcept { minder_->set_deadline(deadline); }
  // SIGTERM now, SIGKILL after `grace`.
  void terminate(Duration grace) noexcept { minder_->terminate(grace); }

  // The end of what it wrote to stderr since forget_errors().
  std::string errors(std::size_t limit) const { return errors_.text(limit); }
  void forget_errors() { errors_ = StderrTail(); }

 private:
  int open_pipes(MinderLine::Plan& plan, const ProcessLimits& limits);
  void take_bytes(std::string_view bytes);
  void take_stream_end();
  void await_writable();
  void fail(std::string why);
  void end_with(ExecutionEnd end);
  void finish_if_read();
  void finish();

  EventLoop& loop_;
  const ProcessCommand& command_;
  const Listener listener_;
  std::shared_ptr<MinderLine> minder_;
  UniqueFd stdin_;
  LoopHandle<uv_poll_t> writable_;  // closed before stdin_
  PipeReader stdout_;
  PipeReader stderr_;
  std::string output_;
  std::size_t written_ = 0;  // of output_
  bool is_last_output_ = false;
  std::string partial_;  // the line that has begun
  bool is_deaf_ = false;
  std::size_t window_bytes_ = 0;
  StderrTail errors_;
  std::string fault_;
  std::optional<ExecutionEnd> end_;  // known, while the last output is awaited
  Timer faulty_;
  Timer window_;
  Timer settle_;
};

}  // namespace pulse
