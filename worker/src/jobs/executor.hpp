// Slots: runs held jobs in slots, enforces the limits of each job, and makes an outcome of the
// end of a task.
//
// The worker ends a task early for one of several reasons, and the first reason decides the report:
//   timeout, stall   failed at that limit, with the records that a sweep leaves
//   cancelled        failed for good; the server makes the job cancelled
//   unreachable      interrupted: the job asked to be killed while the database cannot be reached
//   revoked          nothing: the claim is over
//   interrupted      nothing: deregistering speaks for all jobs; unless the task has an answer
// A job whose program has died fails, or dies with the program: see ExecutionEnd.
// A task that a minder has ended because this loop stood still is interrupted, too, and the job
// goes on.
//
// Invariants (only the loop's thread reads and writes):
// - `running_` has an entry for each claim whose task was started and has not reported an end.
//   take_end(), take_back() and give_back() remove entries.
// - The first reason of an entry stays, except that `revoked` replaces every other reason.
// - `queued_` is the number of entries of `running_` whose slot belongs to `queue_`.
// - `limits_` rings no later than the earliest limit of any task that is not being ended.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "jobs/execution.hpp"
#include "jobs/finisher.hpp"
#include "jobs/start_pace.hpp"
#include "jobs/task_queue.hpp"
#include "liveness/heartbeat.hpp"

namespace pulse {

struct ExecutorConfig {
  std::size_t concurrency = 1;
  // Jobs beyond the slots that the executor gives to their tasks at once, to wait there: see
  // take_back().
  std::size_t ahead = 0;
  bool tells_output = true;  // the last words of a failed task stand in the log
};

class Executor {
 public:
  Executor(ExecutorConfig config, StartExecution start_task, Heartbeat& heartbeat, HeldJobs& held,
           Finisher& finisher, Timers& timers, Log& log);
  ~Executor();

  // Starts prefetched jobs while there are slots, and goes on in the next iterations of the loop
  // once starting has taken an iteration's share: each start may wait for an exec.
  void fill_slots();
  // The server has answered a beat well: pings the minders, checks limits, fills slots.
  void take_good_beat();

  // Jobs have other limits. Ends each task that has passed a limit.
  void check_limits();

  void cancel(ClaimKey claim);
  // The claim is over, however the task ends.
  void revoke(ClaimKey claim);
  // Whether the job was started and yet no code of the task has run, or will: then the caller may
  // release it.
  bool take_back(ClaimKey claim);
  // Ends every task that runs.
  void interrupt_all();
  // Claims that interrupt_all() has ended so far without an outcome.
  std::int64_t interrupted() const { return interrupted_; }

  // Tasks that `queue` takes wait there instead of here. Set before the first job; outlives the
  // executor.
  void set_queue(TaskQueue* queue) { queue_ = queue; }
  // Slots that are taken, without the slots that jobs in the queue wait for.
  std::size_t slots_taken() const;
  // The same of this executor's own tasks alone, without the slots of the queue.
  std::size_t own_slots_taken() const { return running_.size() - queued_; }
  // Started jobs that the queue has.
  std::size_t queued() const { return queued_; }
  // Since when the first job that waits for a slot does so.
  std::optional<TimePoint> slot_awaited_since() const;
  // When the first of these jobs had arrived, also where a slot is free.
  std::optional<TimePoint> first_arrival() const;

  // Logs of each running job for how long, where, and which limit ends the job next.
  void tell_running() const;
  bool is_idle() const { return running_.empty(); }

  // Slots that the tasks of other databases have; where unset, none.
  std::function<std::size_t()> slots_taken_elsewhere;
  // Where other executors start tasks in the same loop, the time of all starts counts as one; see
  // StartPace.
  void share_pace(StartPace& pace) { pace_ = &pace; }

  std::function<void()> on_slot_free;
  std::function<void(std::chrono::nanoseconds)> on_job_took;
  // The machine cannot start tasks now.
  std::function<void(const std::string& reason)> on_exhausted;

 private:
  struct Running;
  // When a task is to be ended next, why, and how long SIGKILL waits; no reason means never.
  struct Limit {
    TimePoint at{};
    EndReason reason = EndReason::none;
    Duration grace{};
  };

  bool has_slot_for(const HeldJob& job) const;
  void start(HeldJob& job);
  void take_progress(ClaimKey claim, const TaskProgress& progress);
  void take_end(ClaimKey claim, const ExecutionEnd& end);
  void log_unreported(const char* outcome, ClaimKey claim, std::chrono::nanoseconds ran_for);
  bool is_reported(const Running& running, const ExecutionEnd& end) const;
  void end_early(Running& running, EndReason reason, Duration grace);
  void give_back(const std::vector<ClaimKey>& unbegun);
  void await_limit(const Running& running, const HeldJob& job);
  Limit next_limit(const Running& running, const HeldJob& job) const;
  TimePoint alive_as_of(const HeldJob& job) const;
  void ping_all();
  void start_pinging();

  const ExecutorConfig config_;
  const StartExecution start_task_;
  Heartbeat& heartbeat_;
  HeldJobs& held_;
  Finisher& finisher_;
  Timers& timers_;
  Log& log_;

  TaskQueue* queue_ = nullptr;
  std::map<ClaimKey, Running> running_;
  std::int64_t interrupted_ = 0;
  std::size_t queued_ = 0;  // of `running_`, the tasks that the queue counts
  StartPace own_pace_;
  StartPace* pace_ = &own_pace_;
  Timer limits_;
  Timer pings_;
};

}  // namespace pulse
