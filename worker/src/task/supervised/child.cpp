#include "task/supervised/child.hpp"

#include <algorithm>
#include <utility>

#include "base/loop/duration.hpp"
#include "task/supervised/exit_status.hpp"

namespace pulse {
namespace {

using namespace std::chrono_literals;

// How long output is awaited after the end: another process may hold the pipes open for ever.
constexpr Duration kQuietTime = 100ms;
constexpr Duration kWindow = 100ms;
// Of stdout in one window: stdout is not parsed, only cut into lines.
constexpr std::size_t kMaxOutputBytes = std::size_t{16} * 1024 * 1024;
// Beyond any grace: a minder that does not answer by then is stuck and is killed itself.
constexpr Duration kMinderPatience = 5s;

}  // namespace

SupervisedChild::SupervisedChild(EventLoop& loop, std::size_t window_bytes, Listener listener)
    : loop_(loop),
      max_window_bytes_(window_bytes),
      listener_(std::move(listener)),
      window_(loop.timers(), [this] { open_window(); }),
      quiet_(loop.timers(), [this] { finish(); }) {}

int SupervisedChild::start(MinderLine::Plan plan, std::string path, TimePoint deadline,
                           Pipes pipes) {
  path_ = std::move(path);
  plan.patience += kMinderPatience;
  int code = 0;
  if (pipes.errors.valid()) {
    code = open(errors_, std::move(pipes.errors),
                [this](std::string_view bytes) { take_errors(bytes); });
    if (code != 0) return code;
  }
  code = open(speech_, std::move(pipes.speech),
              [this](std::string_view bytes) { take_speech(bytes); });
  if (code != 0) return code;
  if (pipes.output.valid()) {
    code = open(output_, std::move(pipes.output),
                [this](std::string_view bytes) { take_output(bytes); });
    if (code != 0) return code;
  }
  MinderLine::Listener listener;
  listener.on_report = [this](const minder::Report& report) { take_report(report); };
  listener.on_lost = [this] { take_lost_minder(); };
  return MinderLine::start(loop_.uv(), plan, deadline, std::move(listener), minder_);
}

int SupervisedChild::open(PipeReader& pipe, UniqueFd fd,
                          std::function<void(std::string_view)> on_bytes) {
  return pipe.open(loop_.uv(), std::move(fd),
                   [this, &pipe, on_bytes = std::move(on_bytes)](std::string_view bytes) {
                     if (!bytes.empty()) return on_bytes(bytes);
                     finish_if_read();
                     const bool is_silent = &pipe == &speech_ && !has_ended_;
                     if (is_silent && listener_.on_speech_closed) listener_.on_speech_closed();
                   });
}

void SupervisedChild::hang_up() noexcept {
  for (PipeReader* pipe : {&speech_, &errors_, &output_}) pipe->close();
  window_.stop();
  quiet_.stop();
  if (const auto minder = std::exchange(minder_, nullptr)) minder->hang_up();
}

void SupervisedChild::terminate(std::chrono::milliseconds grace) noexcept {
  is_told_to_end_ = true;
  minder_->terminate(grace);
}

std::string SupervisedChild::with_errors(std::string error) const {
  constexpr std::string_view kSeparator = ": ";
  error.resize(std::min(error.size(), StderrTail::kMaxBytes / 2));
  const std::string tail =
      errors_tail_.text(StderrTail::kMaxBytes - error.size() - kSeparator.size());
  if (!tail.empty()) error.append(kSeparator).append(tail);
  return error;
}

void SupervisedChild::take_speech(std::string_view bytes) {
  begin_window();
  window_bytes_ += bytes.size();
  if (window_bytes_ >= max_window_bytes_ && !has_ended_) speech_.pause();
  listener_.on_speech(bytes);
}

void SupervisedChild::take_errors(std::string_view bytes) {
  errors_tail_.feed(bytes);
  if (listener_.on_errors) listener_.on_errors(bytes);
}

void SupervisedChild::take_output(std::string_view bytes) {
  begin_window();
  output_bytes_ += bytes.size();
  if (output_bytes_ >= kMaxOutputBytes && !has_ended_) output_.pause();
  listener_.on_output(bytes);
}

void SupervisedChild::begin_window() {
  if (!has_ended_ && !window_.is_running()) window_.start_in(kWindow);
}

void SupervisedChild::open_window() {
  window_bytes_ = 0;
  output_bytes_ = 0;
  speech_.resume();
  output_.resume();
}

void SupervisedChild::take_report(const minder::Report& report) {
  if (report.kind == minder::Report::kStarted) {
    pid_ = report.value;
  } else {
    end_with(describe_end(report, path_));
  }
}

void SupervisedChild::take_lost_minder() {
  ExecutionEnd end = describe_lost_minder();
  if (is_told_to_end_) end.stopped_by = ExecutionEnd::StoppedBy::worker;
  end_with(std::move(end));
}

void SupervisedChild::end_with(ExecutionEnd end) {
  end_ = std::move(end);
  has_ended_ = true;
  window_.stop();
  quiet_.start_in(kQuietTime);
  for (PipeReader* pipe : {&speech_, &errors_, &output_}) pipe->resume();
  finish_if_read();
}

void SupervisedChild::finish_if_read() {
  if (end_ && !speech_.is_open() && !errors_.is_open() && !output_.is_open()) quiet_.start_soon();
}

void SupervisedChild::finish() {
  // A late loop may come here without having read anything since the end.
  for (PipeReader* pipe : {&speech_, &errors_, &output_}) {
    pipe->drain();
    pipe->close();
  }
  quiet_.stop();
  const auto on_end = listener_.on_end;  // which may destroy this object
  on_end(*std::exchange(end_, std::nullopt));
}

}  // namespace pulse
