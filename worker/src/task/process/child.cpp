#include "task/process/child.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "task/executable/environment.hpp"

namespace pulse {
namespace {

using namespace std::chrono_literals;

// A child whose stdin or stdout is closed has most likely ended; the minder will say so.
constexpr Duration kEndPatience = 1s;
// Lines are read at no more than ten times this in a second.
constexpr std::size_t kChildWindowBytes = std::size_t{4} * 1024 * 1024;

ExecutionEnd not_started(std::string error, bool is_transient) {
  ExecutionEnd end;
  end.kind = ExecutionEnd::Kind::not_started;
  end.is_transient = is_transient;
  end.error = std::move(error);
  return end;
}

}  // namespace

ProcessChild::ProcessChild(EventLoop& loop, const ProcessCommand& command, Listener listener)
    : loop_(loop),
      command_(command),
      listener_(std::move(listener)),
      child_(
          loop, kChildWindowBytes,
          {[this](std::string_view bytes) { take_bytes(bytes); },
           [this](ExecutionEnd end) { finish(std::move(end)); }, [this] { take_speech_closed(); },
           [this](std::string_view bytes) {
             if (lines_) lines_->feed(WrittenLines::out, bytes);
           },
           [this](std::string_view bytes) {
             if (lines_) lines_->feed(WrittenLines::err, bytes);
           }}),
      faulty_(loop.timers(), [this] {
        if (!child_.has_ended()) listener_.on_fault(fault_);
      }) {}

std::optional<ExecutionEnd> ProcessChild::start(const ProcessLimits& limits) {
  const char* path = std::getenv("PATH");
  TaskRefusal refusal;
  const auto program =
      find_program(command_.words.front(), path != nullptr ? path : kProgramPath, refusal);
  if (!program) return not_started(refusal.reason, refusal.is_transient());

  MinderLine::Plan plan;
  plan.minder_path = limits.minder_path;
  plan.rules = limits.rules;
  plan.arguments = {command_.task, std::to_string(limits.silence_grace.count()),
                    program->executable.path, program->name};
  plan.arguments.insert(plan.arguments.end(), command_.words.begin() + 1, command_.words.end());
  plan.environment = limits.environment;
  plan.directory_fd = program->executable.directory.get();
  plan.file_fd = program->executable.file.get();
  plan.work_directory_fd = program->executable.folder.get();
  plan.patience = limits.silence_grace;
  if (const int code = open_pipes_and_start(plan, limits); code != 0) {
    return not_started("cannot start " + limits.minder_path + ": " + uv_strerror(code), true);
  }
  return std::nullopt;
}

int ProcessChild::open_pipes_and_start(MinderLine::Plan& plan, const ProcessLimits& limits) {
  channel_ = limits.channel;
  ChildEnds ends;
  SupervisedChild::Pipes pipes;
  if (int error = open_pipe(pipes.errors, ends.errors); error != 0)
    return uv_translate_sys_error(error);
  const int error =
      channel_ == LineChannel::socket ? open_socket(pipes, ends) : open_stdio(pipes, ends);
  if (error != 0) return uv_translate_sys_error(error);
  if (const int code = open_output(pipes, ends, limits); code != 0) {
    return uv_translate_sys_error(code);
  }
  auto watch = std::make_unique<uv_poll_t>();
  // Makes `input_` non-blocking, too; the child's end stays blocking.
  if (const int code = uv_poll_init(loop_.uv(), watch.get(), input_.get()); code != 0) return code;
  watch->data = this;
  writable_ = own_handle(std::move(watch));
  plan.stdin_fd = ends.input.get();
  plan.stdout_fd = ends.output.get();
  plan.stderr_fd = ends.errors.get();
  plan.pulse_fd = ends.socket.get();
  return child_.start(std::move(plan), command_.words[0], limits.deadline, std::move(pipes));
}

// Returns an errno, as the next two functions do.
int ProcessChild::open_stdio(SupervisedChild::Pipes& pipes, ChildEnds& ends) {
  if (const int error = open_pipe(ends.input, input_); error != 0) return error;
  if (const int error = open_pipe(pipes.speech, ends.output); error != 0) return error;
  ends.socket.reset(open("/dev/null", O_WRONLY | O_CLOEXEC));
  return ends.socket.valid() ? 0 : errno;
}

// One descriptor reads and one writes, because each is watched by itself.
int ProcessChild::open_socket(SupervisedChild::Pipes& pipes, ChildEnds& ends) {
  std::array<int, 2> both{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both.data()) != 0) return errno;
  pipes.speech.reset(both[0]);
  ends.socket.reset(both[1]);
  input_.reset(fcntl(pipes.speech.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  ends.input.reset(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!input_.valid() || !ends.input.valid()) return errno;
  return open_pipe(pipes.output, ends.output);
}

// Where the child's output goes that is no line.
int ProcessChild::open_output(SupervisedChild::Pipes& pipes, ChildEnds& ends,
                              const ProcessLimits& limits) {
  const auto use = limits.written != nullptr ? limits.written->use : TaskOutputUse::discard;
  if (use == TaskOutputUse::log) lines_.emplace(*limits.written, limits.writer);
  if (use != TaskOutputUse::inherit) return 0;
  pipes.errors.reset();
  ends.errors.reset(fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  if (!ends.errors.valid()) return errno;
  if (channel_ == LineChannel::stdio) return 0;
  pipes.output.reset();
  ends.output.reset(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  return ends.output.valid() ? 0 : errno;
}

void ProcessChild::flush() {
  while (backlog() > 0 && input_.valid()) {
    const ssize_t size = ::write(input_.get(), output_.data() + written_, backlog());
    if (size >= 0) {
      written_ += static_cast<std::size_t>(size);
    } else if (errno == EAGAIN) {
      return await_writable();
    } else if (errno != EINTR) {
      close_input_now();
      fail(channel_ == LineChannel::socket ? "it has closed its socket"
                                           : "it has closed its stdin");
    }
  }
  output_.clear();
  written_ = 0;
  if (is_last_output_) close_input_now();
}

void ProcessChild::close_input_now() {
  writable_.reset();
  // The descriptor that reads keeps the socket open.
  if (channel_ == LineChannel::socket && input_.valid()) shutdown(input_.get(), SHUT_WR);
  input_.reset();
}

void ProcessChild::await_writable() {
  // Written bytes need not be kept for long.
  if (written_ > output_.size() / 2) {
    output_.erase(0, written_);
    written_ = 0;
  }
  uv_poll_start(writable_.get(), UV_WRITABLE, [](uv_poll_t* watch, int, int) {
    uv_poll_stop(watch);
    static_cast<ProcessChild*>(watch->data)->flush();
  });
}

void ProcessChild::close_input() {
  is_last_output_ = true;
  if (backlog() == 0) flush();
}

void ProcessChild::take_bytes(std::string_view bytes) {
  while (!bytes.empty() && !is_deaf_) {
    const std::size_t newline = bytes.find('\n');
    const bool is_whole = newline != std::string_view::npos;
    const std::string_view part = bytes.substr(0, newline);
    bytes.remove_prefix(is_whole ? newline + 1 : bytes.size());
    if (is_skipping_) {
      is_skipping_ = !is_whole;
    } else if (partial_.size() + part.size() > kMaxLineBytes) {
      partial_ += part.substr(0, kMaxLineBytes - partial_.size());
      is_skipping_ = !is_whole;
      take_long_line(std::exchange(partial_, {}));
    } else if (!is_whole) {
      partial_ += part;
    } else if (partial_.empty()) {
      listener_.on_line(part);
    } else {
      partial_ += part;
      listener_.on_line(std::exchange(partial_, {}));
    }
  }
}

void ProcessChild::take_long_line(const std::string& beginning) {
  if (listener_.on_long_line) return listener_.on_long_line(beginning);
  // The line may have been an answer, and the rest is no line.
  is_deaf_ = true;
  fail("it wrote a line longer than 1 MB");
}

void ProcessChild::take_speech_closed() {
  fault_ =
      channel_ == LineChannel::socket ? "it has closed its socket" : "it has closed its stdout";
  if (!faulty_.is_running()) faulty_.start_in(kEndPatience);
}

void ProcessChild::fail(std::string why) {
  if (child_.has_ended() || faulty_.is_running()) return;
  fault_ = std::move(why);
  faulty_.start_in(input_.valid() ? Duration::zero() : kEndPatience);
}

void ProcessChild::finish(ExecutionEnd end) {
  faulty_.stop();
  if (lines_) lines_->finish();
  // A process on stdout may print a last line without its end. A program has died within a line.
  const bool may_be_line = channel_ == LineChannel::stdio && !is_deaf_;
  if (!partial_.empty() && may_be_line) listener_.on_line(std::exchange(partial_, {}));
  const auto on_end = listener_.on_end;  // which may destroy this object
  on_end(std::move(end));
}

}  // namespace pulse
