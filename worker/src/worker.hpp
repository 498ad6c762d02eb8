// Worker: the worker process without clock, connections and tasks: wires the parts together and
// knows the order of starting and stopping. main.cpp gives the worker a clock, connections and a
// way to start tasks; so do the tests.
//
//   Start: the heartbeat's connection registers; from then on claims, outcomes and sweeps flow.
//   Drain: no new claim, prefetched jobs released, running tasks finish; beats go on until the
//          server has answered the last outcome; then the worker deregisters.
//   Force: tasks are terminated, finished outcomes are still reported, and deregistering makes the
//          rest `interrupted`.
//
// Invariants (only the loop's thread reads and writes):
// - `phase_` only moves forward: running, draining, forcing, leaving, finished; forcing may be left
//   out, and a refusal before the first registration leads straight to finished.
// - The worker deregisters only when the claimer is quiet, no task runs, no outcome waits and no
//   job is held. `last_call_` ends the worker without deregistering.
// - `exit_code_` is drained until a refusal or forcing sets another code; the first other code
//   stays.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "claim/claimer.hpp"
#include "claim/slot_pool.hpp"
#include "config.hpp"
#include "crontab/loader.hpp"
#include "jobs/executor.hpp"
#include "liveness/database_identity.hpp"
#include "liveness/host_check.hpp"
#include "liveness/sweeper.hpp"
#include "observe/health.hpp"
#include "task_limits.hpp"
#include "worker_sessions.hpp"

namespace pulse {

class Worker : private SlotUser {
 public:
  Worker(const Config& config, std::string info_json, Duration open_deadline,
         const Connections& connections, StartExecution start_task, Timers& timers,
         const Random& random, Log& log);
  ~Worker() override;
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Jobs that may run at once now.
  std::size_t slots() const {
    return claimer_.slots ? claimer_.slots() : static_cast<std::size_t>(config_.concurrency);
  }
  // The slots are shared with the workers of other databases, and so is `queue`, which may be null
  // and which has the pool for its hooks. Set before start(). Both outlive this.
  void share_slots(SlotPool& pool, TaskQueue* queue);
  // Tasks that wait in a queue; set before start(). The queue outlives this.
  void set_queue(TaskQueue& queue);
  // Tasks that threads of this process take; set before start(). `threads_in_use` counts the
  // threads that are taken, or soon will be.
  void set_threads_in_use(std::function<std::size_t()> threads_in_use) {
    claimer_.slots_in_use = std::move(threads_in_use);
  }
  // From now on serves `tasks` and the tasks that have a handler, and no others.
  void serve(std::vector<std::string> tasks);
  // The items of the crontab file from now on.
  void load_crontab(CrontabItems items);
  void start();
  // The first call drains, a second one forces.
  void stop();
  // Drains, and never forces. Later calls change nothing.
  void drain_within_grace(const char* why) {
    start_grace();
    if (phase_ == Phase::running) drain(why);
  }
  // With --once: asks again whether a job is ready; ends, because no database has one.
  void ask_again() { claimer_.ask_again(); }
  void end_exhausted();
  // The process refuses to serve this database.
  void refuse(ExitCode code, const std::string& reason) { take_refusal(code, reason); }
  // A signal to stop: as stop(), but a signal within five seconds of the first is the same wish.
  void take_signal();

  // Claims that have brought jobs.
  std::size_t claims() const { return claims_; }
  bool is_draining() const { return phase_ != Phase::running; }
  WorkerState state() const;
  // Logs the running jobs, at any threshold of the log.
  void tell_running() const;

  // The info of a worker with so many slots, in place of the constructor's; set before serve(). The
  // worker tells the server when the slots have changed, and when the worker drains.
  std::function<std::string(std::size_t slots, bool is_draining)> info;
  // Judges other processes of this machine; set before start(). Where unset, no worker is declared
  // lost.
  HostCheck::IsGone is_process_gone;
  // Before the first registration: which database this is. Set before start(); see
  // DatabaseIdentity.
  std::function<void(const std::string& identity)> on_identity;
  // No new claim comes from now on.
  std::function<void()> on_draining;
  // With --once, no job is ready; where unset, the worker drains.
  std::function<void()> on_exhausted;
  // Everything is over and closed.
  std::function<void(ExitCode)> on_finished;

 private:
  enum class Phase { running, draining, forcing, leaving, finished };

  void wire_sessions();
  void wire_heartbeat();
  void wire_jobs();
  void take_refusal(ExitCode code, const std::string& reason);
  void drop_claims_of(std::int64_t worker_id);
  void take_functions(std::vector<std::string> tasks);
  void serve_all();
  void tell_info();
  void wire_queue(TaskQueue* queue);
  bool uses_other_slots() const;
  std::size_t slots_in_use() const;
  Claimer::Elsewhere elsewhere() const;
  void take_free_slot();
  std::size_t slots_taken() const override { return executor_.own_slots_taken(); }
  std::size_t queued() const override { return executor_.queued(); }
  std::size_t waiting() const override;
  std::size_t held() const override;
  std::size_t held_bytes() const override { return held_.bytes(); }
  std::optional<TimePoint> slot_awaited_since() const override;
  std::optional<TimePoint> first_arrival() const override;
  bool wants_jobs() const override { return claimer_.wants_jobs(); }
  void fill_slots() override { executor_.fill_slots(); }
  void claim_or_wait() override { claimer_.claim_or_wait(); }
  std::vector<TaskShare> shares() const;
  void note_other_tasks(const std::vector<std::string>& tasks);
  bool must_share() const;
  void let_jobs_go_back();
  void start_grace();
  void drain(const char* why);
  void force(const char* why);
  void lose_patience();
  void take_exhaustion(const std::string& reason);
  void advance();
  void leave();
  void finish();

  const Config config_;
  Timers& timers_;
  Log& log_;
  WorkerSessions sessions_;
  HeldJobs held_;
  Heartbeat heartbeat_;
  Finisher finisher_;
  TaskLimits task_limits_;
  Sweeper sweeper_;
  HostCheck host_check_;
  CrontabLoader crontab_;
  Claimer claimer_;
  Executor executor_;
  std::optional<DatabaseIdentity> identity_;
  TaskQueue* queue_ = nullptr;
  SlotPool* pool_ = nullptr;

  std::vector<std::string> executables_;
  std::vector<std::string> functions_;
  std::vector<std::string> other_tasks_;  // see shares()
  bool knows_functions_ = false;
  bool are_functions_told_ = false;  // since the tasks were read
  Phase phase_ = Phase::running;
  ExitCode exit_code_ = ExitCode::drained;
  std::size_t claims_ = 0;
  bool was_registered_ = false;
  bool is_told_to_stop_ = false;  // by the process, not by an operator
  Timer grace_;
  Timer last_call_;
  Timer patience_;                            // of --once with a server that does not answer
  std::optional<TimePoint> exhausted_since_;  // since the last task that ran
  std::optional<TimePoint> signalled_at_;
};

}  // namespace pulse
