#include "task/process/execution.hpp"

#include <utility>

#include "task/process/group.hpp"
#include "task/process/line.hpp"
#include "task/process/member.hpp"

namespace pulse {

ProcessExecution::ProcessExecution(ProcessGroup& group, const HeldJob& job, Duration silence_limit,
                                   TimePoint alive_as_of, ExecutionCallbacks callbacks)
    : group_(group),
      job_id_(job.job.input.job_id),
      arrived_at_(job.arrived_at),
      silence_limit_(silence_limit),
      alive_as_of_(alive_as_of),
      progress_interval_(progress_interval(job.job.stall_timeout)),
      callbacks_(std::move(callbacks)),
      next_progress_(group.timers(), [this] { report_progress(); }),
      patience_(group.timers(), [this] { lose_patience(); }) {
  append_job_line(line_, job.job.input);
}

ProcessExecution::~ProcessExecution() {
  group_.withdraw(*this);
  if (member_ != nullptr) member_->forget(*this);
}

void ProcessExecution::ping(TimePoint alive_as_of) {
  alive_as_of_ = alive_as_of;
  group_.ping_soon();
}

bool ProcessExecution::take_back() { return group_.withdraw(*this); }

// Tells the process in a line; the process must answer in time.
void ProcessExecution::terminate(Duration grace) {
  if (end_) return;
  if (group_.withdraw(*this)) end_with(withdrawn_end());
  is_lost_ = is_lost_ || grace == Duration::zero();
  if (!end_ && !std::exchange(is_told_, true)) member_->tell_to_stop(*this, grace);
  const TimePoint limit = group_.timers().now() + (end_ ? Duration::zero() : grace);
  if (!patience_.is_running() || limit < patience_.due()) patience_.start_at(limit);
}

void ProcessExecution::lose_patience() {
  if (member_ == nullptr) return deliver(std::nullopt);
  if (end_) return;
  if (is_lost_ && member_->has_other_work()) {
    // The other jobs of the process may go on if this job stops at once.
    is_lost_ = false;
    patience_.start_in(group_.kill_allowance());
  } else {
    member_->end_because("job " + std::to_string(job_id_) + " did not stop in time");
  }
}

void ProcessExecution::begin(ProcessMember& member) {
  member_ = &member;
  line_ = std::string();
  began_at_ = group_.timers().now();
}

void ProcessExecution::take_progress(TaskProgress progress) {
  progress_.take_newer(std::move(progress));
  if (!next_progress_.is_running()) {
    next_progress_.start_at(std::max(not_before_, group_.timers().now()));
  }
}

void ProcessExecution::report_progress() {
  not_before_ = group_.timers().now() + progress_interval_;
  const TaskProgress progress = std::exchange(progress_, {});
  if (!progress.empty()) callbacks_.on_progress(progress);
}

void ProcessExecution::end_with(ExecutionEnd end) {
  end_ = std::move(end);
  end_->ran_for = member_ != nullptr ? group_.timers().now() - began_at_ : Duration::zero();
}

void ProcessExecution::deliver(std::optional<std::chrono::nanoseconds> occupied_for) {
  member_ = nullptr;
  if (!progress_.empty()) report_progress();
  ExecutionEnd end = *std::exchange(end_, std::nullopt);
  end.payload = std::move(payload_);
  end.occupied_for = occupied_for;
  const auto on_end = std::move(callbacks_.on_end);
  on_end(end);
}

}  // namespace pulse
