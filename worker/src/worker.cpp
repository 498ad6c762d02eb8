#include "worker.hpp"

#include <algorithm>
#include <utility>

#include "base/log/name_list.hpp"
#include "base/postgres/connection_options.hpp"
#include "base/postgres/sqlstate.hpp"
#include "session/refusal.hpp"

namespace pulse {
namespace {

using namespace std::chrono_literals;

// After a task could not be started for want of memory, processes or descriptors.
constexpr Duration kExhaustedPause = 1s;
// The longest time from forcing to leaving: tasks are killed within two of the five seconds.
constexpr Duration kLastCall = 5s;
constexpr Duration kFarewellDeadline = 2s;
// How long --once waits for a server that does not answer, or a machine that starts no task.
constexpr Duration kOncePatience = 1min;
// A second signal counts from then on.
constexpr Duration kSignalPause = 5s;

constexpr const char* kNothingServed =
    "it serves no task: no executable in the tasks folder (--tasks), no --process, no --program, "
    "and "
    "no function of this database that its role may execute";

std::optional<TimePoint> earlier(std::optional<TimePoint> one, std::optional<TimePoint> other) {
  return one && (!other || *one < *other) ? one : other;
}

ExecutorConfig executor_config(const Config& config) {
  const int ahead = config.tasks_queue ? config.prefetch.value_or(0) : 0;
  return {static_cast<std::size_t>(config.concurrency + config.batch_slots),
          static_cast<std::size_t>(ahead), config.task_output != TaskOutputUse::discard};
}

}  // namespace

Worker::Worker(const Config& config, std::string info_json, Duration open_deadline,
               const Connections& connections, StartExecution start_task, Timers& timers,
               const Random& random, Log& log)
    : config_(config),
      timers_(timers),
      log_(log),
      sessions_(connections, open_deadline, timers, random, log),
      heartbeat_(
          {config.name, std::move(info_json), config.heartbeat_interval, config.is_one_of_many},
          sessions_.heartbeat, timers, held_, log),
      finisher_(sessions_.finish, heartbeat_, held_, timers, log),
      task_limits_(sessions_.heartbeat, heartbeat_, held_, timers, log),
      sweeper_(sessions_.finish, timers, random, log),
      host_check_(sessions_.finish, timers, log),
      crontab_(sessions_.finish, timers, log),
      claimer_({config.name, config.database_name, static_cast<std::size_t>(config.concurrency),
                static_cast<std::size_t>(config.batch_slots), config.once, config.prefetch,
                config.max_held_bytes, config.is_one_of_many},
               sessions_.claim, heartbeat_, held_, finisher_, timers, log),
      executor_(executor_config(config), std::move(start_task), heartbeat_, held_, finisher_,
                timers, log),
      grace_(timers, [this] { force("grace is over"); }),
      last_call_(timers, [this] { finish(); }),
      patience_(timers, [this] { lose_patience(); }) {
  wire_sessions();
  wire_heartbeat();
  wire_jobs();
}

void Worker::wire_sessions() {
  sessions_.on_refused = [this](const std::string& reason) {
    take_refusal(ExitCode::database_gone, in_one_line(reason, "", kHowToConnect));
  };
  sessions_.on_unreadable = [this](const std::string& reason) {
    take_refusal(ExitCode::database_gone, reason);
  };
  sessions_.on_notice = [this](const Notice& notice) {
    if (notice.sqlstate == sqlstate::kSweepIsDue) sweeper_.sweep_now();
    if (notice.sqlstate == sqlstate::kHandlersChanged) {
      heartbeat_.ask_for_handlers();
      task_limits_.refresh();
    }
    if (notice.sqlstate == sqlstate::kWarning) {
      log_.warning("server_warns",
                   {{"reason", in_one_line(notice.message, notice.detail, notice.hint)}});
    }
  };
}

void Worker::wire_heartbeat() {
  heartbeat_.has_claim_under_way = [this] { return claimer_.has_claim_under_way(); };
  heartbeat_.may_register = [this] { return !identity_ || identity_->is_known(); };
  heartbeat_.claim_under_way_since = [this] { return claimer_.under_way_since(); };
  heartbeat_.on_registered = [this] {
    if (!was_registered_) sessions_.heartbeat.warn_of_superuser();
    was_registered_ = true;
    const Registration& registration = *heartbeat_.registration();
    sessions_.set_reconnect_cap(registration.heartbeat_interval);
    sweeper_.start(registration);
    host_check_.start(registration, is_process_gone);
    crontab_.start();
  };
  heartbeat_.on_established = [this] { sessions_.claim.wake(); };
  heartbeat_.on_handler_tasks = [this](std::vector<std::string> tasks) {
    take_functions(std::move(tasks));
  };
  heartbeat_.on_good_beat = [this] {
    if (patience_.is_running()) patience_.start_in(kOncePatience);
    executor_.take_good_beat();
    sessions_.claim.wake();
    tell_info();
    finisher_.wake_for_reports();
    if (must_share()) sessions_.finish.open();
  };
  task_limits_.on_changed = [this] { executor_.check_limits(); };
  sweeper_.on_workers_lost = [this] { host_check_.check_again(); };
  heartbeat_.on_background_sweeps = [this](bool sweeps) {
    sweeper_.leave_interval_to_others(sweeps);
  };
  heartbeat_.on_lost = [this](std::int64_t worker_id) { drop_claims_of(worker_id); };
  heartbeat_.on_revoked = [this](const std::vector<ClaimKey>& claims) {
    for (const ClaimKey claim : claims) executor_.revoke(claim);
  };
  heartbeat_.on_cancelled = [this](const std::vector<ClaimKey>& claims) {
    for (const ClaimKey claim : claims) executor_.cancel(claim);
  };
  heartbeat_.on_order = [this](Heartbeat::Order order) {
    if (order == Heartbeat::Order::stop) return drain_within_grace("told to stop");
    if (phase_ == Phase::running) drain("told to drain");
  };
  heartbeat_.on_refused = [this](ExitCode code, const std::string& reason) {
    take_refusal(code, reason);
  };
}

void Worker::wire_jobs() {
  claimer_.on_claimed = [this] {
    ++claims_;
    sessions_.finish.open();  // in time for the reports of the jobs
    executor_.fill_slots();
  };
  claimer_.must_share = [this] { return must_share(); };
  claimer_.next_errand = [this] { return earlier(sweeper_.next_sweep(), host_check_.due()); };
  sessions_.finish.on_lost = [this](const std::string&) {
    if (must_share()) claimer_.share();
  };
  claimer_.on_superseded = [this](ClaimKey claim) { executor_.revoke(claim); };
  claimer_.on_exhausted = [this] {
    crontab_.when_loaded([this] { on_exhausted ? on_exhausted() : end_exhausted(); });
  };
  crontab_.on_refused = [this](const std::string& reason) {
    take_refusal(ExitCode::configuration, reason);
  };
  claimer_.on_refused = [this](const std::string& reason) {
    take_refusal(ExitCode::configuration, reason);
  };
  claimer_.on_quiet = [this] { advance(); };
  if (config_.tasks_queue) let_jobs_go_back();
  executor_.on_slot_free = [this] { take_free_slot(); };
  executor_.on_job_took = [this](std::chrono::nanoseconds duration) {
    exhausted_since_.reset();
    claimer_.job_took(duration);
  };
  executor_.on_exhausted = [this](const std::string& reason) { take_exhaustion(reason); };
  finisher_.on_sending = [this] { claimer_.claim_if_due(); };
  finisher_.on_answered = [this] {
    claimer_.reconsider();
    advance();
  };
  finisher_.on_claim_lost = [this](ClaimKey claim) { executor_.revoke(claim); };
}

// The outcomes of held jobs have no connection of their own, and cannot get one.
bool Worker::must_share() const { return sessions_.finish.is_failing() && !held_.empty(); }

void Worker::let_jobs_go_back() {
  claimer_.take_back = [this](ClaimKey claim) { return executor_.take_back(claim); };
}

void Worker::serve(std::vector<std::string> tasks) {
  executables_ = std::move(tasks);
  are_functions_told_ = false;
  serve_all();
  if (heartbeat_.registration()) heartbeat_.ask_for_handlers();
}

void Worker::load_crontab(CrontabItems items) {
  crontab_.set(config_.crontab_set, std::move(items));
}

// The functions are the second half of the served tasks. A worker that serves no task from the
// start on is a mistake of the operator; a worker that loses all tasks later may be in the middle
// of a deployment.
void Worker::take_functions(std::vector<std::string> tasks) {
  const bool is_first = !std::exchange(knows_functions_, true);
  const bool is_change = tasks != functions_;
  if (!std::exchange(are_functions_told_, true) || is_change) {
    log_.write(tasks.empty() ? LogLevel::debug : LogLevel::info, "functions",
               {{"count", static_cast<std::int64_t>(tasks.size())}, {"names", name_list(tasks)}});
  }
  functions_ = std::move(tasks);
  if (is_change) serve_all();
  if (!executables_.empty() || !functions_.empty()) return;
  if (is_first) return take_refusal(ExitCode::configuration, kNothingServed);
  log_.warning("serves_nothing", {{"reason", kNothingServed}});
}

void Worker::serve_all() {
  std::vector<std::string> tasks = executables_;
  tasks.insert(tasks.end(), functions_.begin(), functions_.end());
  std::sort(tasks.begin(), tasks.end());
  tasks.erase(std::unique(tasks.begin(), tasks.end()), tasks.end());
  note_other_tasks(tasks);
  heartbeat_.serve(tasks);
  tell_info();
  if (was_registered_) claimer_.serve(std::move(tasks));
}

void Worker::start() {
  if (on_identity) identity_.emplace(sessions_.heartbeat, on_identity, log_);
  sessions_.heartbeat.open();
  sessions_.claim.open();
  if (config_.once) patience_.start_in(kOncePatience);
}

void Worker::stop() {
  if (std::exchange(is_told_to_stop_, true)) return force("second signal");
  drain_within_grace("signal");
}

// The caller of --once waits for the end of the worker; but an outage ends no task.
void Worker::lose_patience() {
  if (!executor_.is_idle()) return patience_.start_in(kOncePatience);
  const std::string& why = sessions_.heartbeat.last_reason();
  take_refusal(ExitCode::database_gone,
               in_one_line("no answer of the server for " + to_string(kOncePatience) +
                               (why.empty() ? "" : ": " + why),
                           "", sessions_.heartbeat.was_open() ? "" : kHowToConnect));
}

// With --once the jobs stay ready, so that the worker would try for ever.
void Worker::take_exhaustion(const std::string& reason) {
  claimer_.hold_off(kExhaustedPause, reason);
  if (!config_.once || !executor_.is_idle()) return;
  if (!exhausted_since_) exhausted_since_ = timers_.now();
  if (timers_.now() - *exhausted_since_ < kOncePatience) return;
  take_refusal(ExitCode::exhausted,
               "no task could be started for " + to_string(kOncePatience) + ": " + reason);
}

// Supervisors tell a process and then the process group, people press keys twice: signals that come
// at once are one wish. Only a later signal says that the drain takes too long.
void Worker::take_signal() {
  const bool is_echo = signalled_at_ && timers_.now() < *signalled_at_ + kSignalPause;
  if (is_echo && phase_ == Phase::draining) {
    const auto left = *signalled_at_ + kSignalPause - timers_.now();
    log_.info("signal_ignored", {{"reason", "it counts as the same"}, {"next_counts_in_ms", left}});
    return;
  }
  if (!signalled_at_) signalled_at_ = timers_.now();
  stop();
}

// The database refuses this worker and will go on refusing.
void Worker::take_refusal(ExitCode code, const std::string& reason) {
  if (phase_ != Phase::running) {
    // The worker cannot report the outcomes of its tasks meanwhile.
    if (code == ExitCode::database_gone) start_grace();
    return;
  }
  log_.error("refused", {{"reason", reason}, {"exit_code", static_cast<std::int64_t>(code)}});
  exit_code_ = code;
  if (was_registered_) {
    // Tasks may finish, and their reports are delivered if the refusal ends in time.
    start_grace();
    drain("refused");
  } else {
    finish();
  }
}

// The server gave the jobs of this worker id to other workers. A job that has ended already is
// still reported: the token decides.
void Worker::drop_claims_of(std::int64_t worker_id) {
  held_.forget_left();
  for (const ClaimKey claim : held_.claims_of(worker_id)) {
    if (held_.find(claim)->state != HeldJob::State::ended) executor_.revoke(claim);
  }
  advance();
}

WorkerState Worker::state() const {
  WorkerState state;
  state.is_established = heartbeat_.is_established();
  state.is_draining = phase_ != Phase::running;
  if (const auto& registration = heartbeat_.registration()) {
    state.worker_id = registration->worker_id;
    state.silence_limit = registration->silence_limit();
  }
  state.last_good = heartbeat_.last_good();
  state.running = static_cast<std::int64_t>(held_.count(HeldJob::State::running));
  state.prefetched = static_cast<std::int64_t>(held_.count(HeldJob::State::prefetched));
  state.held = state.running + state.prefetched +
               static_cast<std::int64_t>(held_.count(HeldJob::State::ended));
  state.concurrency = static_cast<std::int64_t>(slots());
  return state;
}

void Worker::tell_running() const {
  executor_.tell_running();
  const WorkerState now = state();
  std::optional<std::int64_t> worker_id;
  std::optional<std::chrono::nanoseconds> heartbeat_age;
  std::optional<std::chrono::nanoseconds> grace_left;
  if (now.worker_id != 0) worker_id = now.worker_id;
  if (now.last_good != TimePoint{}) heartbeat_age = timers_.now() - now.last_good;
  if (grace_.is_running()) grace_left = grace_.due() - timers_.now();
  log_.answer("summary", {{"worker", worker_id},
                          {"running", now.running},
                          {"slots", now.concurrency},
                          {"prefetched", now.prefetched},
                          {"held", now.held},
                          {"heartbeat_age_ms", heartbeat_age},
                          {"grace_left_ms", grace_left}});
}

// Of a drain that begins now, or that an operator's order had left without a limit.
void Worker::start_grace() {
  const bool may_drain = phase_ == Phase::running || phase_ == Phase::draining;
  if (may_drain && !grace_.is_running()) grace_.start_in(config_.grace);
}

void Worker::drain(const char* why) {
  phase_ = Phase::draining;
  log_.info("draining",
            {{"reason", why},
             {"running", static_cast<std::int64_t>(held_.count(HeldJob::State::running))}});
  claimer_.stop();
  if (queue_ != nullptr && pool_ == nullptr) queue_->drain();
  tell_info();
  if (on_draining) on_draining();
  advance();
}

void Worker::force(const char* why) {
  if (phase_ != Phase::draining) return;
  phase_ = Phase::forcing;
  if (exit_code_ == ExitCode::drained) exit_code_ = ExitCode::forced;
  log_.warning("forcing",
               {{"reason", why},
                {"running", static_cast<std::int64_t>(held_.count(HeldJob::State::running))}});
  grace_.stop();
  last_call_.start_in(kLastCall);
  executor_.interrupt_all();
  advance();
}

void Worker::advance() {
  if (phase_ != Phase::draining && phase_ != Phase::forcing) return;
  if (claimer_.is_quiet() && executor_.is_idle() && finisher_.is_empty() && held_.empty()) leave();
}

void Worker::leave() {
  phase_ = Phase::leaving;
  grace_.stop();
  sweeper_.stop();
  host_check_.stop();
  crontab_.stop();
  if (!last_call_.is_running()) last_call_.start_in(kLastCall);
  heartbeat_.deregister(kFarewellDeadline, [this] { finish(); });
}

void Worker::finish() {
  if (phase_ == Phase::finished) return;
  phase_ = Phase::finished;
  patience_.stop();
  grace_.stop();
  last_call_.stop();
  sessions_.close();
  const Finisher::Counters& counters = finisher_.counters();
  log_.info("stopped", {{"exit_code", static_cast<std::int64_t>(exit_code_)},
                        {"completed", counters.completed},
                        {"failed", counters.failed},
                        {"cancelled", counters.cancelled},
                        {"released", counters.released},
                        {"snoozed", counters.snoozed},
                        {"interrupted", executor_.interrupted() + counters.interrupted},
                        {"stale", counters.stale},
                        {"unknown", counters.unknown},
                        {"unreported", static_cast<std::int64_t>(finisher_.size())}});
  if (on_finished) on_finished(exit_code_);
}

}  // namespace pulse
