#include "task/process/execution.hpp"

#include <utility>

namespace pulse {

ProcessExecution::ProcessExecution(JobQueue& queue, const HeldJob& job, std::string line,
                                   Duration silence_limit, TimePoint alive_as_of,
                                   ExecutionCallbacks callbacks)
    : queue_(queue),
      job_id_(job.job.input.job_id),
      database_(job.job.input.database),
      task_(job.job.input.identifier),
      attempt_(job.job.input.attempt),
      arrived_at_(job.arrived_at),
      line_(std::move(line)),
      silence_limit_(silence_limit),
      alive_as_of_(alive_as_of),
      progress_interval_(progress_interval(job.job.stall_timeout)),
      callbacks_(std::move(callbacks)),
      next_progress_(queue.timers(), [this] { report_progress(); }),
      patience_(queue.timers(), [this] { lose_patience(); }) {}

ProcessExecution::~ProcessExecution() {
  queue_.withdraw(*this);
  if (process_ != nullptr) process_->forget(*this);
}

void ProcessExecution::ping(TimePoint alive_as_of) {
  alive_as_of_ = alive_as_of;
  queue_.ping_soon();
}

bool ProcessExecution::take_back() { return queue_.withdraw(*this); }

// Tells the process in a line; the process must answer in time.
void ProcessExecution::terminate(Duration grace) {
  // Each newer claim of the job ends this one again: that neither shortens nor renews the time.
  if (end_ || has_last_time_) return;
  if (queue_.withdraw(*this)) end_with(withdrawn_end());
  is_lost_ = is_lost_ || grace == Duration::zero();
  if (!end_ && !std::exchange(is_told_, true)) process_->tell_to_stop(*this, grace);
  const TimePoint limit = queue_.timers().now() + (end_ ? Duration::zero() : grace);
  if (!patience_.is_running() || limit < patience_.due()) patience_.start_at(limit);
}

void ProcessExecution::lose_patience() {
  if (process_ == nullptr) return deliver(std::nullopt);
  if (!end_) process_->lose_patience(*this);
}

void ProcessExecution::give_more_time(Duration grace) {
  is_lost_ = false;
  has_last_time_ = true;
  patience_.start_in(grace);
}

void ProcessExecution::begin(JobProcess& process) {
  process_ = &process;
  line_ = std::string();
  began_at_ = queue_.timers().now();
}

void ProcessExecution::take_progress(TaskProgress progress) {
  progress_.take_newer(std::move(progress));
  if (!next_progress_.is_running()) {
    next_progress_.start_at(std::max(not_before_, queue_.timers().now()));
  }
}

void ProcessExecution::report_progress() {
  not_before_ = queue_.timers().now() + progress_interval_;
  const TaskProgress progress = std::exchange(progress_, {});
  if (!progress.empty()) callbacks_.on_progress(progress);
}

void ProcessExecution::end_with(ExecutionEnd end) {
  end_ = std::move(end);
  end_->ran_for = process_ != nullptr ? queue_.timers().now() - began_at_ : Duration::zero();
}

void ProcessExecution::deliver(std::optional<std::chrono::nanoseconds> occupied_for) {
  process_ = nullptr;
  if (!progress_.empty()) report_progress();
  ExecutionEnd end = *std::exchange(end_, std::nullopt);
  end.payload = std::move(payload_);
  end.occupied_for = occupied_for;
  const auto on_end = std::move(callbacks_.on_end);
  on_end(end);
}

}  // namespace pulse
