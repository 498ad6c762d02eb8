#include "task/executable/run.hpp"

#include <algorithm>
#include <utility>

#include "task/executable/output.hpp"
#include "task/executable/stdio.hpp"
#include "task/supervised/child.hpp"

namespace pulse {
namespace {

// Lines of PULSE_FD are parsed at no more than ten times this in a second.
constexpr std::size_t kWindowBytes = std::size_t{1024} * 1024;

}  // namespace

class ExecutableRun::Run : public std::enable_shared_from_this<ExecutableRun::Run> {
 public:
  Run(EventLoop& loop, const ExecutableOptions& options, ExecutionCallbacks callbacks)
      : timers_(loop.timers()),
        ping_limit_(options.ping_limit),
        callbacks_(std::move(callbacks)),
        use_(options.written != nullptr ? options.written->use : TaskOutputUse::discard),
        output_(options.progress_interval),
        child_(loop, kWindowBytes, listener()),
        next_progress_(loop.timers(), [this] { report_progress(); }) {
    if (use_ == TaskOutputUse::log) lines_.emplace(*options.written, options.writer);
  }

  int start(const Executable& executable, const ExecutableOptions& options);
  void ping(TimePoint alive_as_of) noexcept { child_.set_deadline(alive_as_of + ping_limit_); }
  void terminate(Duration grace) noexcept { child_.terminate(grace); }
  void hang_up() noexcept;
  std::optional<std::int64_t> pid() const noexcept { return child_.pid(); }

 private:
  SupervisedChild::Listener listener();
  TaskStdio::Output stdio_use() const;
  void take_stdout(std::string_view bytes);
  std::string with_output(std::string error) const;
  void schedule_progress();
  void report_progress();
  void finish(ExecutionEnd end);

  Timers& timers_;
  const Duration ping_limit_;
  const ExecutionCallbacks callbacks_;
  const TaskOutputUse use_;
  std::optional<WrittenLines> lines_;
  StderrTail stdout_tail_;
  TaskOutput output_;
  SupervisedChild child_;
  bool is_hung_up_ = false;
  Timer next_progress_;
};

SupervisedChild::Listener ExecutableRun::Run::listener() {
  SupervisedChild::Listener listener;
  listener.on_speech = [this](std::string_view bytes) {
    output_.feed(bytes);
    schedule_progress();
  };
  listener.on_output = [this](std::string_view bytes) { take_stdout(bytes); };
  listener.on_errors = [this](std::string_view bytes) {
    if (lines_) lines_->feed(WrittenLines::err, bytes);
  };
  listener.on_end = [this](ExecutionEnd end) { finish(std::move(end)); };
  return listener;
}

TaskStdio::Output ExecutableRun::Run::stdio_use() const {
  if (callbacks_.on_stdout || use_ == TaskOutputUse::log) return TaskStdio::Output::read;
  return use_ == TaskOutputUse::inherit ? TaskStdio::Output::inherited
                                        : TaskStdio::Output::discarded;
}

void ExecutableRun::Run::take_stdout(std::string_view bytes) {
  stdout_tail_.feed(bytes);
  if (lines_) lines_->feed(WrittenLines::out, bytes);
  if (callbacks_.on_stdout) callbacks_.on_stdout(bytes);
}

// Programs that say nothing on stderr may say on stdout why they fail.
std::string ExecutableRun::Run::with_output(std::string error) const {
  constexpr std::string_view kSeparator = ": ";
  std::string told = child_.with_errors(error);
  if (told.size() > error.size()) return told;
  const std::string tail =
      stdout_tail_.text(StderrTail::kMaxBytes - told.size() - kSeparator.size());
  if (!tail.empty()) told.append(kSeparator).append(tail);
  return told;
}

int ExecutableRun::Run::start(const Executable& executable, const ExecutableOptions& options) {
  TaskStdio stdio;
  if (const int error = stdio.open(options.stdin_text, stdio_use()); error != 0) {
    return uv_translate_sys_error(error);
  }
  MinderLine::Plan plan;
  plan.minder_path = options.minder_path;
  plan.rules = options.rules;
  plan.arguments = {std::to_string(options.job_id), std::to_string(options.silence_grace.count()),
                    executable.path};
  plan.environment = options.environment;
  plan.stdin_fd = stdio.stdin_fd.get();
  plan.stdout_fd = stdio.stdout_fd.get();
  plan.stderr_fd = stdio.stderr_fd.get();
  plan.pulse_fd = stdio.pulse_fd.get();
  plan.directory_fd = executable.directory.get();
  plan.file_fd = executable.file.get();
  plan.work_directory_fd =
      options.work_directory >= 0 ? options.work_directory : executable.folder.get();
  plan.patience = options.silence_grace;
  return child_.start(std::move(plan), executable.path, options.alive_as_of + ping_limit_,
                      {std::move(stdio.pulse_reader), std::move(stdio.stderr_reader),
                       std::move(stdio.stdout_reader)});
}

void ExecutableRun::Run::schedule_progress() {
  const std::optional<TimePoint> due = output_.next_report();
  if (!due || child_.has_ended() || next_progress_.is_running()) return;
  next_progress_.start_at(std::max(*due, timers_.now()));
}

void ExecutableRun::Run::report_progress() {
  const std::shared_ptr<Run> self = shared_from_this();  // the callback may let go of this
  const auto progress = output_.take_due(timers_.now());
  if (progress && callbacks_.on_progress) callbacks_.on_progress(*progress);
}

void ExecutableRun::Run::finish(ExecutionEnd end) {
  const std::shared_ptr<Run> self = shared_from_this();  // the callbacks may let go of this
  next_progress_.stop();
  output_.finish();
  if (lines_) lines_->finish();
  if (const auto progress = output_.take_rest(); progress && callbacks_.on_progress) {
    callbacks_.on_progress(*progress);
    if (is_hung_up_) return;
  }
  end.result = output_.result();
  end.payload = output_.payload();
  end.dropped_lines = output_.dropped_lines();
  if (!end.error.empty()) end.error = with_output(std::move(end.error));
  if (callbacks_.on_end) callbacks_.on_end(end);
}

void ExecutableRun::Run::hang_up() noexcept {
  is_hung_up_ = true;
  next_progress_.stop();
  child_.hang_up();
}

ExecutableRun::ExecutableRun(std::shared_ptr<Run> run) noexcept : run_(std::move(run)) {}

ExecutableRun::~ExecutableRun() { run_->hang_up(); }

ExecutableRun::StartResult ExecutableRun::start(EventLoop& loop, const Executable& executable,
                                                const ExecutableOptions& options,
                                                ExecutionCallbacks callbacks) {
  auto run = std::make_shared<Run>(loop, options, std::move(callbacks));
  if (const int code = run->start(executable, options); code != 0) {
    run->hang_up();
    return {nullptr, code, "cannot start " + options.minder_path + ": " + uv_strerror(code)};
  }
  return {std::unique_ptr<ExecutableRun>(new ExecutableRun(std::move(run))), 0, {}};
}

void ExecutableRun::ping(TimePoint alive_as_of) { run_->ping(alive_as_of); }

std::optional<std::int64_t> ExecutableRun::pid() const { return run_->pid(); }

void ExecutableRun::terminate(Duration grace) { run_->terminate(grace); }

}  // namespace pulse
