#include "task/process/child.hpp"

#include <fcntl.h>
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
      child_(loop, kChildWindowBytes,
             {[this](std::string_view bytes) { take_bytes(bytes); },
              [this](ExecutionEnd end) { finish(std::move(end)); },
              [this] { take_stdout_closed(); },
              {},
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
  plan.environment = process_environment(command_.task, environ, limits.variables);
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
  UniqueFd stdin_reader, stdout_writer, stderr_writer;
  SupervisedChild::Pipes pipes;
  const UniqueFd null(open("/dev/null", O_WRONLY | O_CLOEXEC));
  if (!null.valid()) return uv_translate_sys_error(errno);
  for (const auto& [reader, writer] :
       {std::pair(&stdin_reader, &stdin_), std::pair(&pipes.speech, &stdout_writer),
        std::pair(&pipes.errors, &stderr_writer)}) {
    if (const int error = open_pipe(*reader, *writer); error != 0) {
      return uv_translate_sys_error(error);
    }
  }
  const auto use = limits.written != nullptr ? limits.written->use : TaskOutputUse::discard;
  if (use == TaskOutputUse::log) {
    lines_.emplace(*limits.written, WrittenLines::Writer{command_.task, {}, {}});
  } else if (use == TaskOutputUse::inherit) {
    pipes.errors.reset();
    stderr_writer.reset(fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
    if (!stderr_writer.valid()) return uv_translate_sys_error(errno);
  }
  auto watch = std::make_unique<uv_poll_t>();
  // Makes `stdin_` non-blocking, too; the child's end stays blocking.
  if (const int code = uv_poll_init(loop_.uv(), watch.get(), stdin_.get()); code != 0) return code;
  watch->data = this;
  writable_ = own_handle(std::move(watch));
  plan.stdin_fd = stdin_reader.get();
  plan.stdout_fd = stdout_writer.get();
  plan.stderr_fd = stderr_writer.get();
  plan.pulse_fd = null.get();
  return child_.start(std::move(plan), command_.words[0], limits.deadline, std::move(pipes));
}

void ProcessChild::flush() {
  while (backlog() > 0 && stdin_.valid()) {
    const ssize_t size = ::write(stdin_.get(), output_.data() + written_, backlog());
    if (size >= 0) {
      written_ += static_cast<std::size_t>(size);
    } else if (errno == EAGAIN) {
      return await_writable();
    } else if (errno != EINTR) {
      writable_.reset();
      stdin_.reset();
      fail("it has closed its stdin");
    }
  }
  output_.clear();
  written_ = 0;
  if (is_last_output_) {
    writable_.reset();
    stdin_.reset();
  }
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

void ProcessChild::close_stdin() {
  is_last_output_ = true;
  if (backlog() == 0) flush();
}

void ProcessChild::take_bytes(std::string_view bytes) {
  while (!bytes.empty() && !is_deaf_) {
    const std::size_t newline = bytes.find('\n');
    const bool is_whole = newline != std::string_view::npos;
    const std::string_view part = bytes.substr(0, newline);
    bytes.remove_prefix(is_whole ? newline + 1 : bytes.size());
    if (partial_.size() + part.size() > kMaxLineBytes) {
      // The line may have been an answer, and the rest is no line.
      is_deaf_ = true;
      partial_ = std::string();
      fail("it wrote a line longer than 1 MB");
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

void ProcessChild::take_stdout_closed() {
  fault_ = "it has closed its stdout";
  if (!faulty_.is_running()) faulty_.start_in(kEndPatience);
}

void ProcessChild::fail(std::string why) {
  if (child_.has_ended() || faulty_.is_running()) return;
  fault_ = std::move(why);
  faulty_.start_in(stdin_.valid() ? Duration::zero() : kEndPatience);
}

void ProcessChild::finish(ExecutionEnd end) {
  faulty_.stop();
  if (lines_) lines_->finish();
  if (!partial_.empty() && !is_deaf_) listener_.on_line(std::exchange(partial_, {}));
  const auto on_end = listener_.on_end;  // which may destroy this object
  on_end(std::move(end));
}

}  // namespace pulse
