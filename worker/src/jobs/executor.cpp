#include "jobs/executor.hpp"

#include <algorithm>
#include <utility>

#include "jobs/end_outcome.hpp"

namespace pulse {
namespace {

using namespace std::chrono_literals;

// When the worker itself must be gone soon.
constexpr Duration kInterruptGrace = 2s;

// Nothing where there is none.
std::string reason_text(EndReason reason) {
  return reason == EndReason::none ? "" : reason_name(reason);
}

}  // namespace

struct Executor::Running {
  std::unique_ptr<Execution> execution;
  TimePoint started_at{};
  // On a clock that stands still while beats are overdue, as the server's does in an outage.
  TimePoint claimed_at{};
  TimePoint last_activity{};  // the last progress, or the claim
  EndReason reason = EndReason::none;
  bool is_queued = false;  // the queue holds the slot
};

Executor::Executor(ExecutorConfig config, StartExecution start_task, Heartbeat& heartbeat,
                   HeldJobs& held, Finisher& finisher, Timers& timers, Log& log)
    : config_(config),
      start_task_(std::move(start_task)),
      heartbeat_(heartbeat),
      held_(held),
      finisher_(finisher),
      timers_(timers),
      log_(log),
      own_pace_(timers, [this] { fill_slots(); }),
      limits_(timers, [this] { check_limits(); }),
      pings_(timers, [this] { ping_all(); }) {}

Executor::~Executor() = default;

void Executor::fill_slots() {
  // A stale loop must not start a job that may be another worker's; the next good beat calls again.
  while (heartbeat_.is_fresh() && pace_->has_time()) {
    HeldJob* job = held_.first_prefetched();
    if (job == nullptr || !has_slot_for(*job)) return;
    const TimePoint began = timers_.now();
    start(*job);
    pace_->spend(timers_.now() - began);
  }
}

std::size_t Executor::slots_taken() const {
  return own_slots_taken() + (queue_ != nullptr ? queue_->busy() : 0) +
         (slots_taken_elsewhere ? slots_taken_elsewhere() : 0);
}

std::optional<TimePoint> Executor::slot_awaited_since() const {
  const HeldJob* job = held_.first_prefetched();
  if (job == nullptr || has_slot_for(*job)) return std::nullopt;
  return job->arrived_at;
}

std::optional<TimePoint> Executor::first_arrival() const {
  const HeldJob* job = held_.first_prefetched();
  return job == nullptr ? std::nullopt : std::optional(job->arrived_at);
}

bool Executor::has_slot_for(const HeldJob& job) const {
  if (queue_ != nullptr && queue_->takes(job)) return true;
  const std::size_t reserved = queue_ != nullptr ? queue_->reserved() : 0;
  return slots_taken() + reserved < config_.concurrency + config_.ahead;
}

void Executor::start(HeldJob& job) {
  const ClaimKey claim = job.key();
  held_.move(job, HeldJob::State::running);
  ExecutionCallbacks callbacks;
  callbacks.on_progress = [this, claim](const TaskProgress& progress) {
    take_progress(claim, progress);
  };
  callbacks.on_end = [this, claim](const ExecutionEnd& end) { take_end(claim, end); };
  ExecutionStart started =
      start_task_(job, *heartbeat_.registration(), alive_as_of(job), std::move(callbacks));
  HeldJobs::forget_texts(job);
  if (!started.execution) {
    if (started.is_transient) {
      finisher_.add(Outcome::released(claim, started.error));
      if (on_exhausted) on_exhausted(started.error);
    } else {
      finisher_.add(Outcome::failed(claim, started.error, /*may_retry=*/true, started.error));
    }
    return;
  }
  Running running;
  running.execution = std::move(started.execution);
  running.started_at = timers_.now();
  running.claimed_at = job.claimed_at - heartbeat_.missed();
  running.last_activity = running.claimed_at;
  running.is_queued = queue_ != nullptr && queue_->takes(job);
  if (running.is_queued) ++queued_;
  const auto entry = running_.emplace(claim, std::move(running)).first;
  await_limit(entry->second, job);
  start_pinging();
}

void Executor::take_progress(ClaimKey claim, const TaskProgress& progress) {
  const auto entry = running_.find(claim);
  if (entry == running_.end() || entry->second.reason == EndReason::revoked) return;
  entry->second.last_activity = timers_.now() - heartbeat_.missed();
  finisher_.report_progress(claim, progress);
}

void Executor::take_end(ClaimKey claim, const ExecutionEnd& end) {
  const auto entry = running_.find(claim);
  if (entry == running_.end()) return;
  const Running running = std::move(entry->second);
  running_.erase(entry);
  if (running.is_queued) --queued_;
  HeldJob* job = held_.find(claim);
  const std::chrono::nanoseconds ran_for = end.ran_for.value_or(timers_.now() - running.started_at);
  if (end.dropped_lines > 0) {
    log_.warning("lines_dropped",
                 {{"job", claim.job_id}, {"count", static_cast<std::int64_t>(end.dropped_lines)}});
  }
  if (end.kind == ExecutionEnd::Kind::completed) {
    // Even if the claim was revoked: a beat after the commit does not find the job any more.
    Outcome outcome = Outcome::completed(claim, std::nullopt);
    outcome.ran_for = ran_for;
    finisher_.note_completed(std::move(outcome));
    if (on_job_took) on_job_took(ran_for);
    if (on_slot_free) on_slot_free();
    return;
  }
  if (job != nullptr && is_reported(running, end)) {
    Outcome outcome = outcome_of(running.reason, *job, end, config_.tells_output);
    outcome.ran_for = ran_for;
    outcome.payload = end.payload;
    const bool exhausted = outcome.kind == Outcome::Kind::release;
    finisher_.add(std::move(outcome));
    if (exhausted) {
      if (on_exhausted) on_exhausted(end.error);
    } else if (on_job_took) {
      on_job_took(end.occupied_for.value_or(ran_for));
    }
  } else {
    finisher_.revoke(claim);
    const bool is_interrupted = running.reason == EndReason::interrupted;
    if (is_interrupted) ++interrupted_;
    log_unreported(is_interrupted ? "interrupted" : "revoked", claim, ran_for);
    is_interrupted ? held_.leave(claim) : held_.erase(claim);
  }
  if (on_slot_free) on_slot_free();
}

// Logs the end of a claim that the worker does not report to the server.
void Executor::log_unreported(const char* outcome, ClaimKey claim,
                              std::chrono::nanoseconds ran_for) {
  const HeldJob* job = held_.find(claim);
  if (job == nullptr) return;
  log_.info(outcome, {{"job", claim.job_id},
                      {"task", job->job.input.identifier},
                      {"attempt", job->job.input.attempt},
                      {"worker", job->worker_id},
                      {"outcome", outcome},
                      {"duration_ms", ran_for},
                      {"trace_id", job->job.input.trace_id()}});
}

bool Executor::is_reported(const Running& running, const ExecutionEnd& end) const {
  if (running.reason == EndReason::interrupted) {
    return end.is_answer &&
           (end.kind == ExecutionEnd::Kind::succeeded || end.kind == ExecutionEnd::Kind::snoozed);
  }
  return running.reason != EndReason::revoked;
}

void Executor::end_early(Running& running, EndReason reason, Duration grace) {
  // Being revoked overrides every other reason: the server takes no report for the claim.
  if (running.reason == EndReason::none || reason == EndReason::revoked) running.reason = reason;
  running.execution->explain(running.reason);
  running.execution->terminate(grace);
}

void Executor::cancel(ClaimKey claim) {
  const auto entry = running_.find(claim);
  if (entry != running_.end()) {
    end_early(entry->second, EndReason::cancelled, kTermGrace);
    return;
  }
  const HeldJob* job = held_.find(claim);
  if (job != nullptr && job->state == HeldJob::State::prefetched) {
    finisher_.add(Outcome::cancelled(claim, "cancelled"));
  }
}

void Executor::revoke(ClaimKey claim) {
  HeldJob* job = held_.find(claim);
  if (job == nullptr) return;
  const auto entry = running_.find(claim);
  if (entry != running_.end()) {
    held_.move(*job, HeldJob::State::revoked);
    end_early(entry->second, EndReason::revoked, Duration::zero());
  } else if (job->state == HeldJob::State::prefetched) {
    log_unreported("revoked", claim, std::chrono::nanoseconds::zero());
    held_.erase(claim);
  } else {
    finisher_.revoke(claim);
  }
}

void Executor::tell_running() const {
  const TimePoint now = timers_.now();
  for (const auto& [claim, running] : running_) {
    const HeldJob* job = held_.find(claim);
    if (job == nullptr) continue;
    const Limit next = running.reason == EndReason::none ? next_limit(running, *job) : Limit{};
    std::optional<std::chrono::nanoseconds> left;
    if (next.reason != EndReason::none) left = next.at - now;
    log_.answer("running", {{"job", claim.job_id},
                            {"task", job->job.input.identifier},
                            {"attempt", job->job.input.attempt},
                            {"worker", job->worker_id},
                            {"duration_ms", now - running.started_at},
                            {"pid", running.execution->pid()},
                            {"ending", reason_text(running.reason)},
                            {"limit", reason_text(next.reason)},
                            {"limit_in_ms", left},
                            {"trace_id", job->job.input.trace_id()}});
  }
}

bool Executor::take_back(ClaimKey claim) {
  const auto entry = running_.find(claim);
  if (entry == running_.end() || !entry->second.execution->take_back()) return false;
  if (entry->second.is_queued) --queued_;
  running_.erase(entry);
  return true;
}

void Executor::interrupt_all() {
  for (auto& [claim, running] : running_) {
    end_early(running, EndReason::interrupted, kInterruptGrace);
  }
}

// Ends each task that has passed a limit, and calls again when the next limit may be passed. Limits
// that move, by progress or a good beat, only move on: checking too early costs nothing.
void Executor::check_limits() {
  const TimePoint now = timers_.now();
  std::optional<TimePoint> next;
  std::vector<ClaimKey> unbegun;
  for (auto& [claim, running] : running_) {
    const HeldJob* job = held_.find(claim);
    if (job == nullptr || running.reason != EndReason::none) continue;
    const Limit limit = next_limit(running, *job);
    if (limit.reason == EndReason::none) continue;
    if (limit.at <= now && running.execution->take_back()) {
      unbegun.push_back(claim);
    } else if (limit.at <= now) {
      // A late loop leaves less grace: SIGKILL comes when the server expects the kill.
      const auto left = std::chrono::duration_cast<Duration>(limit.at + limit.grace - now);
      end_early(running, limit.reason, std::max(left, Duration::zero()));
    } else if (!next || limit.at < *next) {
      next = limit.at;
    }
  }
  if (next) {
    limits_.start_at(*next);
  } else {
    limits_.stop();
  }
  give_back(unbegun);
}

// Releases jobs that have not begun, with the attempt: limits count the time of the task.
void Executor::give_back(const std::vector<ClaimKey>& unbegun) {
  for (const ClaimKey claim : unbegun) {
    const auto entry = running_.find(claim);
    if (entry->second.is_queued) --queued_;
    running_.erase(entry);
    finisher_.add(Outcome::released(claim, "its limit came before its start"));
  }
  if (!unbegun.empty() && on_slot_free) on_slot_free();
}

// The same for a task that was just started; a limit that has passed already is for the next
// iteration.
void Executor::await_limit(const Running& running, const HeldJob& job) {
  const Limit limit = next_limit(running, job);
  if (limit.reason == EndReason::none) return;
  if (!limits_.is_running() || limit.at < limits_.due()) limits_.start_at(limit.at);
}

Executor::Limit Executor::next_limit(const Running& running, const HeldJob& job) const {
  Limit next;
  const auto consider = [&](TimePoint at, EndReason reason, Duration grace) {
    at = std::max(at, job.limits_as_of);
    if (next.reason == EndReason::none || at < next.at) next = {at, reason, grace};
  };
  // While beats are overdue both limits stand still; the next good beat checks again.
  if (!heartbeat_.is_overdue()) {
    const auto missed = heartbeat_.missed();
    if (job.job.timeout) {
      consider(running.claimed_at + *job.job.timeout + missed, EndReason::timeout, kTermGrace);
    }
    if (job.job.stall_timeout) {
      consider(running.last_activity + *job.job.stall_timeout + missed, EndReason::stall,
               kTermGrace);
    }
  }
  if (job.job.on_unreachable == OnUnreachable::kill && heartbeat_.registration()) {
    const Registration& registration = *heartbeat_.registration();
    consider(heartbeat_.last_good() + registration.silence_limit(), EndReason::unreachable,
             registration.kill_allowance());
  }
  return next;
}

// While beats are good a minder counts from the last good beat, as the server does. Once a beat is
// overdue the database may be out of reach, and a task that is to go on lives as long as this loop.
TimePoint Executor::alive_as_of(const HeldJob& job) const {
  const bool goes_on = job.job.on_unreachable == OnUnreachable::keep_running;
  return heartbeat_.is_overdue() && goes_on ? timers_.now() : heartbeat_.last_good();
}

void Executor::take_good_beat() {
  ping_all();
  check_limits();
  fill_slots();
}

void Executor::ping_all() {
  if (!heartbeat_.registration()) return;
  for (auto& [claim, running] : running_) {
    const HeldJob* job = held_.find(claim);
    if (job != nullptr) running.execution->ping(alive_as_of(*job));
  }
  pings_.stop();
  start_pinging();
}

void Executor::start_pinging() {
  if (running_.empty() || pings_.is_running()) return;
  constexpr int kPingsInLimit = 4;
  pings_.start_in(heartbeat_.registration()->silence_limit() / kPingsInLimit);
}

}  // namespace pulse
