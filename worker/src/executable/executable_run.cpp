#include "executable/executable_run.hpp"

#include <algorithm>
#include <utility>

#include "executable/task_stdio.hpp"
#include "supervised/exit_status.hpp"
#include "supervised/minder_line.hpp"
#include "supervised/pipe_reader.hpp"
#include "text/stderr_tail.hpp"

namespace pulse {
namespace {

using std::chrono::milliseconds;

// How long output is awaited after the end: somebody else may hold the pipes open for ever.
constexpr milliseconds kSettleTime{100};
// Lines are parsed at no more than this per window, so that a flood costs a part of one core.
constexpr std::size_t kWindowBytes = std::size_t{1024} * 1024;
constexpr milliseconds kWindow{100};
// Beyond any grace: a minder that does not answer by then is stuck and is killed itself.
constexpr milliseconds kMinderPatience{5000};

}  // namespace

// All callbacks but on_stdout are made from timers, so that no pipe or minder is in the middle of
// something when the caller destroys the object.
class ExecutableRun::Run : public std::enable_shared_from_this<ExecutableRun::Run> {
 public:
  Run(uv_loop_t* loop, std::string path, const ExecutableOptions& options,
      ExecutionCallbacks callbacks)
      : loop_(loop),
        path_(std::move(path)),
        ping_limit_(options.ping_limit),
        callbacks_(std::move(callbacks)),
        output_(options.progress_interval) {}

  int start(const Executable& executable, const ExecutableOptions& options);
  void ping(BootClock::time_point alive_as_of) noexcept {
    minder_->set_deadline(alive_as_of + ping_limit_);
  }
  void terminate(milliseconds grace) noexcept {
    is_told_to_end_ = true;
    minder_->terminate(grace);
  }
  void hang_up() noexcept;
  std::optional<std::int64_t> pid() const noexcept { return pid_; }

 private:
  using Step = void (Run::*)();

  // One deadline of this run, whose step may end the run.
  struct Timer {
    LoopHandle<uv_timer_t> handle;
    Run* run = nullptr;
    Step step = nullptr;
  };

  int open_pipes(TaskStdio& stdio);
  void open_timer(Timer& timer, Step step);
  void start_timer(Timer& timer, milliseconds delay) noexcept;

  void take_pulse_bytes(std::string_view bytes);
  void take_report(const minder::Report& report);
  void end_with(ExecutionEnd end);
  void schedule_progress();
  void report_progress();
  void open_window();
  void finish_if_read();
  void finish();

  uv_loop_t* const loop_;
  const std::string path_;
  const milliseconds ping_limit_;
  const ExecutionCallbacks callbacks_;
  std::shared_ptr<MinderLine> minder_;
  PipeReader stdout_;
  PipeReader stderr_;
  PipeReader pulse_;
  StderrTail errors_;
  TaskOutput output_;
  std::size_t window_bytes_ = 0;
  std::optional<ExecutionEnd> end_;  // known, while the last output is awaited
  std::optional<std::int64_t> pid_;
  bool is_told_to_end_ = false;
  bool is_hung_up_ = false;
  Timer progress_timer_;
  Timer window_timer_;
  Timer settle_timer_;
};

int ExecutableRun::Run::start(const Executable& executable, const ExecutableOptions& options) {
  TaskStdio stdio;
  const auto stdout_use =
      callbacks_.on_stdout ? TaskStdio::Stdout::read : TaskStdio::Stdout::discarded;
  if (const int error = stdio.open(options.stdin_text, stdout_use); error != 0) {
    return uv_translate_sys_error(error);
  }
  open_timer(progress_timer_, &Run::report_progress);
  open_timer(window_timer_, &Run::open_window);
  open_timer(settle_timer_, &Run::finish);
  if (const int code = open_pipes(stdio); code != 0) return code;

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
  plan.patience = options.silence_grace + kMinderPatience;
  MinderLine::Listener listener;
  listener.on_report = [this](const minder::Report& report) { take_report(report); };
  listener.on_lost = [this] {
    ExecutionEnd end = describe_lost_minder();
    if (is_told_to_end_) end.stopped_by = ExecutionEnd::StoppedBy::worker;
    end_with(std::move(end));
  };
  return MinderLine::start(loop_, plan, options.alive_as_of + ping_limit_, std::move(listener),
                           minder_);
}

int ExecutableRun::Run::open_pipes(TaskStdio& stdio) {
  int code = stderr_.open(loop_, std::move(stdio.stderr_reader), [this](std::string_view bytes) {
    bytes.empty() ? finish_if_read() : errors_.feed(bytes);
  });
  if (code != 0) return code;
  code = pulse_.open(loop_, std::move(stdio.pulse_reader), [this](std::string_view bytes) {
    bytes.empty() ? finish_if_read() : take_pulse_bytes(bytes);
  });
  if (code != 0 || !stdio.stdout_reader.valid()) return code;
  return stdout_.open(loop_, std::move(stdio.stdout_reader), [this](std::string_view bytes) {
    bytes.empty() ? finish_if_read() : callbacks_.on_stdout(bytes);
  });
}

void ExecutableRun::Run::open_timer(Timer& timer, Step step) {
  auto handle = std::make_unique<uv_timer_t>();
  uv_timer_init(loop_, handle.get());
  handle->data = &timer;
  timer = {own_handle(std::move(handle)), this, step};
}

void ExecutableRun::Run::start_timer(Timer& timer, milliseconds delay) noexcept {
  uv_update_time(loop_);
  uv_timer_start(
      timer.handle.get(),
      [](uv_timer_t* handle) {
        const Timer& due = *static_cast<Timer*>(handle->data);
        const std::shared_ptr<Run> run = due.run->shared_from_this();
        if (!run->is_hung_up_) (run.get()->*due.step)();
      },
      static_cast<std::uint64_t>(delay.count()), 0);
}

void ExecutableRun::Run::take_pulse_bytes(std::string_view bytes) {
  output_.feed(bytes);
  schedule_progress();
  if (end_) return;
  if (window_bytes_ == 0) start_timer(window_timer_, kWindow);
  window_bytes_ += bytes.size();
  if (window_bytes_ >= kWindowBytes) pulse_.pause();
}

void ExecutableRun::Run::open_window() {
  window_bytes_ = 0;
  pulse_.resume();
}

void ExecutableRun::Run::schedule_progress() {
  const std::optional<BootClock::time_point> due = output_.next_report();
  if (!due || end_ || uv_is_active(reinterpret_cast<uv_handle_t*>(progress_timer_.handle.get()))) {
    return;
  }
  const auto delay = std::chrono::ceil<milliseconds>(*due - BootClock::now());
  start_timer(progress_timer_, std::max(delay, milliseconds::zero()));
}

void ExecutableRun::Run::report_progress() {
  const auto progress = output_.take_due(BootClock::now());
  if (!progress) return schedule_progress();  // the loop counts whole milliseconds: a bit early
  if (callbacks_.on_progress) callbacks_.on_progress(*progress);
}

void ExecutableRun::Run::take_report(const minder::Report& report) {
  if (report.kind == minder::Report::kStarted) {
    pid_ = report.value;
    return;
  }
  end_with(describe_end(report, path_));
}

void ExecutableRun::Run::end_with(ExecutionEnd end) {
  end_ = std::move(end);
  start_timer(settle_timer_, kSettleTime);
  uv_timer_stop(window_timer_.handle.get());
  for (PipeReader* pipe : {&stdout_, &stderr_, &pulse_}) pipe->resume();
  finish_if_read();
}

void ExecutableRun::Run::finish_if_read() {
  if (end_ && !stdout_.is_open() && !stderr_.is_open() && !pulse_.is_open()) {
    start_timer(settle_timer_, milliseconds::zero());
  }
}

void ExecutableRun::Run::finish() {
  // A late loop may come here before it has read anything since the end.
  for (PipeReader* pipe : {&stdout_, &stderr_, &pulse_}) {
    pipe->drain();
    pipe->close();
  }
  uv_timer_stop(settle_timer_.handle.get());
  uv_timer_stop(progress_timer_.handle.get());
  output_.finish();
  if (const auto progress = output_.take_rest(); progress && callbacks_.on_progress) {
    callbacks_.on_progress(*progress);
    if (is_hung_up_) return;
  }
  ExecutionEnd end = *std::exchange(end_, std::nullopt);
  end.result = output_.result();
  end.dropped_lines = output_.dropped_lines();
  if (!end.error.empty()) {
    constexpr std::string_view kSeparator = ": ";
    end.error.resize(std::min(end.error.size(), StderrTail::kMaxBytes / 2));
    const std::string tail =
        errors_.text(StderrTail::kMaxBytes - end.error.size() - kSeparator.size());
    if (!tail.empty()) end.error.append(kSeparator).append(tail);
  }
  if (callbacks_.on_end) callbacks_.on_end(end);
}

void ExecutableRun::Run::hang_up() noexcept {
  is_hung_up_ = true;
  for (PipeReader* pipe : {&stdout_, &stderr_, &pulse_}) pipe->close();
  for (Timer* timer : {&progress_timer_, &window_timer_, &settle_timer_}) timer->handle.reset();
  if (minder_) minder_->hang_up();
}

ExecutableRun::ExecutableRun(std::shared_ptr<Run> run) noexcept : run_(std::move(run)) {}

ExecutableRun::~ExecutableRun() { run_->hang_up(); }

ExecutableRun::StartResult ExecutableRun::start(uv_loop_t* loop, const Executable& executable,
                                                const ExecutableOptions& options,
                                                ExecutionCallbacks callbacks) {
  auto run = std::make_shared<Run>(loop, executable.path, options, std::move(callbacks));
  if (const int code = run->start(executable, options); code != 0) {
    run->hang_up();
    return {nullptr, code, "cannot start " + options.minder_path + ": " + uv_strerror(code)};
  }
  return {std::unique_ptr<ExecutableRun>(new ExecutableRun(std::move(run))), 0, {}};
}

void ExecutableRun::ping(BootClock::time_point alive_as_of) noexcept { run_->ping(alive_as_of); }

std::optional<std::int64_t> ExecutableRun::pid() const noexcept { return run_->pid(); }

void ExecutableRun::terminate(milliseconds grace) noexcept { run_->terminate(grace); }

}  // namespace pulse
