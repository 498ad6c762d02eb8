#include "worker_process.hpp"

#include <unistd.h>

#include <csignal>
#include <set>
#include <utility>

#include "base/log/name_list.hpp"
#include "liveness/identity.hpp"
#include "task/supervised/fd_limit.hpp"
#include "task/supervised/minder_line.hpp"
#include "task/supervised/orphans.hpp"

namespace pulse {
namespace {

// Between two searches for a task that was served and is missing.
constexpr std::chrono::seconds kMissingPause{5};

// The tasks' share of this process's limits: the limits at the start of the process.
minder::TaskRules task_rules(const Config& config, Log& log) {
  const FdLimit limit =
      raise_fd_limit(config.concurrency * static_cast<int>(1 + config.processes.size()) +
                     config.program_copies * static_cast<int>(config.programs.size()));
  if (limit.now < limit.wanted) {
    log.warning("few_descriptors", {{"limit", static_cast<std::int64_t>(limit.now)},
                                    {"wanted", static_cast<std::int64_t>(limit.wanted)}});
  }
  return {config.may_gain_privileges, limit.before};
}

}  // namespace

WorkerProcess::WorkerProcess(const Config& config, Surroundings& surroundings,
                             const Watchers& watchers, Log& log)
    : log_(log),
      surroundings_(surroundings),
      watchers_(watchers),
      claim_(make_connection(loop_, surroundings.database)),
      finish_(make_connection(loop_, surroundings.database)),
      heartbeat_(make_connection(loop_, surroundings.database)),
      random_(random_source()),
      rules_(task_rules(config, log)),
      written_(config.task_output, loop_.timers(), log),
      missing_(loop_.timers(), [this] { check_missing_tasks(); }),
      functions_(
          [this, options = surroundings.database] { return make_connection(loop_, options); },
          surroundings.database.deadline(), loop_.timers(), random_, log),
      processes_(config.processes, {loop_, surroundings.minder_path, rules_, random_, log,
                                    &surroundings.variables, &written_}),
      programs_(config.programs, program_settings(config), config.is_concurrency_given),
      queues_(processes_, programs_),
      router_(functions_, processes_, programs_, surroundings.folder, executables(), log),
      worker_(config, identity_json(read_identity(), config.concurrency),
              surroundings.database.deadline(), {*claim_, *finish_, *heartbeat_}, router_.starter(),
              loop_.timers(), random_, log),
      service_manager_(watchers.service_manager, loop_.timers(), log) {
  const bool has_queues = !config.processes.empty() || !config.programs.empty();
  if (has_queues) worker_.set_queue(queues_);
}

ProgramSettings WorkerProcess::program_settings(const Config& config) {
  return {.loop = loop_,
          .minder_path = surroundings_.minder_path,
          .rules = rules_,
          .random = random_,
          .log = log_,
          .variables = &surroundings_.variables,
          .written = &written_,
          .copies = static_cast<std::size_t>(config.program_copies),
          .start_limit = config.start_limit,
          .replace_grace = config.replace_grace,
          .environment = config.program_env};
}

StartExecution WorkerProcess::executables() {
  return executable_starter({loop_, surroundings_.folder, surroundings_.minder_path, rules_,
                             surroundings_.variables, written_, [this] { missing_.start_soon(); }});
}

ExitCode WorkerProcess::run() {
  take_end();
  take_signals();
  take_surroundings();
  tell_watchers();
  worker_.is_process_gone = is_process_gone;
  take_programs();
  programs_.empty() ? begin() : programs_.start();
  if (!is_over_) loop_.run();
  // For good: a late signal does not change how this process ends.
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  reap_orphans();
  return exit_code_;
}

void WorkerProcess::take_end() {
  worker_.on_finished = [this](ExitCode code) { end(code); };
}

// Programs may take their time to say good-bye, unless the worker is forced to end.
void WorkerProcess::end(ExitCode code) {
  if (std::exchange(is_over_, true)) return;
  exit_code_ = code;
  if (!has_begun_ || code == ExitCode::forced) return loop_.stop();
  programs_.drain();
  programs_.when_gone([this] { loop_.stop(); });
}

// The worker registers once each program has said which tasks it serves.
void WorkerProcess::take_programs() {
  programs_.served_elsewhere = [this] { return router_.tasks_without_programs(); };
  programs_.on_ready = [this] { begin(); };
  programs_.on_failed = [this](const std::string& reason) {
    constexpr auto kCode = ExitCode::configuration;
    log_.error("refused", {{"reason", "--program: " + reason},
                           {"exit_code", static_cast<std::int64_t>(kCode)}});
    end(kCode);
  };
  programs_.on_tasks_changed = [this] { serve_tasks(); };
}

void WorkerProcess::serve_tasks() {
  served_ = router_.read_tasks();
  worker_.serve(served_);
}

void WorkerProcess::begin() {
  has_begun_ = true;
  serve_tasks();
  worker_.set_info(identity_json(read_identity(), static_cast<int>(worker_.slots())));
  if (surroundings_.crontab) worker_.load_crontab(std::move(*surroundings_.crontab));
  worker_.start();
}

// A process that has not registered has nothing to drain.
void WorkerProcess::take_stop() {
  if (is_over_) return loop_.stop();
  has_begun_ ? worker_.take_signal() : end(ExitCode::drained);
}

void WorkerProcess::take_signals() {
  signals_.on(SIGTERM, [this] { take_stop(); });
  signals_.on(SIGINT, [this] { take_stop(); });
  signals_.on(SIGHUP, [this] { reload(); });
  signals_.on(SIGUSR1, [this] { worker_.tell_running(); });
}

void WorkerProcess::take_surroundings() {
  constexpr pid_t kInit = 1;
  if (getpid() == kInit) zombies_.emplace(loop_, MinderLine::is_ending_orphans);
  if (watchers_.terminal < 0) return;
  terminal_.emplace(loop_, watchers_.terminal,
                    [this] { worker_.drain_within_grace("its terminal was closed"); });
}

void WorkerProcess::reload() {
  service_manager_.begin_reload();
  if (const auto problem = surroundings_.variables.read_file()) {
    log_.warning("env_file_refused", {{"reason", *problem}});
  }
  if (has_begun_) {
    read_crontab_again();
    serve_tasks();
    programs_.replace();
  }
  service_manager_.end_reload();
}

void WorkerProcess::read_crontab_again() {
  if (surroundings_.crontab_path.empty()) return;
  auto read = read_crontab(surroundings_.crontab_path);
  if (const auto* problem = std::get_if<std::string>(&read)) {
    log_.warning("crontab_refused", {{"reason", *problem}});
    return;
  }
  worker_.load_crontab(std::get<CrontabItems>(std::move(read)));
}

// Jobs of a missing task are left to other workers, until the task is there again.
void WorkerProcess::check_missing_tasks() {
  auto tasks = router_.read_tasks_again();
  const std::set<std::string>& missing = surroundings_.folder.missing();
  if (tasks != std::exchange(served_, tasks)) {
    log_.warning("tasks_changed", {{"folder", surroundings_.folder.path()},
                                   {"missing", name_list({missing.begin(), missing.end()})}});
    worker_.serve(std::move(tasks));
  }
  if (!missing.empty()) missing_.start_in(kMissingPause);
}

void WorkerProcess::tell_watchers() {
  if (watchers_.status != nullptr) iterating_.emplace(loop_.timers(), kIterationInterval, nullptr);
  const bool is_watched = watchers_.status != nullptr || watchers_.progress != nullptr ||
                          service_manager_.is_listening();
  if (is_watched) loop_.on_iteration = [this] { publish(); };
}

void WorkerProcess::publish() {
  WorkerState state = worker_.state();
  state.program_refusal = programs_.refusal();
  if (watchers_.status != nullptr) watchers_.status->publish(state);
  if (watchers_.progress != nullptr) watchers_.progress->publish_running(state.running);
  service_manager_.publish(state);
}

}  // namespace pulse
