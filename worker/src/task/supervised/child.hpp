// Supervised child: an executable or a persistent process under a minder, from its start to the
// report of its end.
//
// The child ends once: on_end comes when the minder has reported the end and each pipe is at end of
// file, at most 100 ms later. The worker reads the child's speech and output at a limited rate, so
// that a flood costs a part of one core. Of stderr the last 16 kB are kept.
//
// Invariants (only the loop's thread reads and writes, and nothing blocks):
// - on_end comes from a timer and may destroy the object; the other callbacks come while a pipe is
//   read, so the object must live on.
// - `end_` is set from the report of the end until on_end. `has_ended_` stays true.
// - `window_bytes_` and `output_bytes_` count the bytes of the running window only; a pipe over the
//   limit is paused until the window is over.
// - After hang_up(), and so after the destructor, no callback comes, and the minder ends the rest
//   of the task.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/loop/event_loop.hpp"
#include "base/loop/unique_fd.hpp"
#include "base/text/stderr_tail.hpp"
#include "jobs/execution_report.hpp"
#include "task/supervised/minder_line.hpp"
#include "task/supervised/pipe_reader.hpp"

namespace pulse {

class SupervisedChild {
 public:
  // The ends that the worker reads.
  struct Pipes {
    UniqueFd speech;  // the child's words to the worker
    UniqueFd errors;  // stderr of the child, if the worker reads it
    UniqueFd output;  // stdout of the child, where stdout is no speech and on_output is set
  };
  struct Listener {
    std::function<void(std::string_view)> on_speech;
    std::function<void(ExecutionEnd)> on_end;
    // The child has closed the pipe of its speech, and has not ended yet.
    std::function<void()> on_speech_closed = {};
    std::function<void(std::string_view)> on_output = {};
    std::function<void(std::string_view)> on_errors = {};
  };

  // Takes at most about `window_bytes` of speech in each tenth of a second.
  SupervisedChild(EventLoop& loop, std::size_t window_bytes, Listener listener);
  SupervisedChild(const SupervisedChild&) = delete;
  SupervisedChild& operator=(const SupervisedChild&) = delete;
  ~SupervisedChild() { hang_up(); }

  // Once; returns a libuv code. `path` names the program in errors, and plan.patience is how long
  // the minder may take to kill the child.
  int start(MinderLine::Plan plan, std::string path, TimePoint deadline, Pipes pipes);
  void hang_up() noexcept;

  // When the minder ends the child, unless a later deadline comes.
  void set_deadline(TimePoint deadline) noexcept { minder_->set_deadline(deadline); }
  // SIGTERM now, SIGKILL after `grace`.
  void terminate(std::chrono::milliseconds grace) noexcept;

  // The end is known; at most the last output is awaited.
  bool has_ended() const noexcept { return has_ended_; }
  // Of the child itself, from the moment of execution.
  std::optional<std::int64_t> pid() const noexcept { return pid_; }
  // `error`, and behind it the child's last lines on stderr since forget_errors().
  std::string with_errors(std::string error) const;
  void forget_errors() { errors_tail_ = StderrTail(); }

 private:
  int open(PipeReader& pipe, UniqueFd fd, std::function<void(std::string_view)> on_bytes);
  void take_speech(std::string_view bytes);
  void take_errors(std::string_view bytes);
  void take_output(std::string_view bytes);
  void begin_window();
  void open_window();
  void take_report(const minder::Report& report);
  void take_lost_minder();
  void end_with(ExecutionEnd end);
  void finish_if_read();
  void finish();

  EventLoop& loop_;
  const std::size_t max_window_bytes_;
  const Listener listener_;
  std::string path_;
  std::shared_ptr<MinderLine> minder_;
  PipeReader speech_;
  PipeReader errors_;
  PipeReader output_;
  StderrTail errors_tail_;
  std::size_t window_bytes_ = 0;     // of speech
  std::size_t output_bytes_ = 0;     // in the same window
  std::optional<ExecutionEnd> end_;  // while the last output is awaited
  bool has_ended_ = false;
  bool is_told_to_end_ = false;
  std::optional<std::int64_t> pid_;
  Timer window_;
  Timer quiet_;
};

}  // namespace pulse
