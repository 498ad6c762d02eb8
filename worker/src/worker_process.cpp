#include "worker_process.hpp"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <set>
#include <utility>

#include "base/log/name_list.hpp"
#include "task/supervised/fd_limit.hpp"
#include "task/supervised/minder_line.hpp"
#include "task/supervised/orphans.hpp"

namespace pulse {
namespace {

// Between two searches for a task that was served and is missing.
constexpr std::chrono::seconds kMissingPause{5};
// Between two tries to read what the machine could not read.
constexpr std::chrono::seconds kUnreadPause{5};
// How long --once waits for the list of nodes, as for a server.
constexpr std::chrono::minutes kOncePatience{1};

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

WorkerGroup::Kind kind_of(const DatabasesToServe& databases) {
  using Kind = WorkerGroup::Kind;
  if (databases.cluster) return Kind::cluster;
  return databases.listed.size() == 1 ? Kind::one_database : Kind::several;
}

bool has_queues(const Config& config) {
  return !config.processes.empty() || !config.programs.empty();
}

}  // namespace

WorkerProcess::WorkerProcess(const Config& config, Surroundings& surroundings,
                             const Watchers& watchers, Log& log)
    : log_(log),
      config_(config),
      surroundings_(surroundings),
      watchers_(watchers),
      random_(random_source()),
      identity_(read_identity()),
      rules_(task_rules(config, log)),
      written_(config.task_output, loop_.timers(), log),
      missing_(loop_.timers(), [this] { check_missing_tasks(); }),
      unread_(loop_.timers(), [this] { read_again(); }),
      processes_(config.processes, {loop_, surroundings.minder_path, rules_, random_, log,
                                    &surroundings.variables, &written_}),
      programs_(config.programs, program_settings(config), config.is_concurrency_given),
      queues_(processes_, programs_),
      tasks_(processes_, programs_, surroundings.folder, log),
      workers_(
          kind_of(surroundings.databases), config.once,
          [this](const NamedDatabase& database) { return make_worker(database); }, loop_.timers(),
          log),
      service_manager_(watchers.service_manager, loop_.timers(), log) {
  if (kind_of(surroundings.databases) == WorkerGroup::Kind::one_database) return;
  pool_.emplace(static_cast<std::size_t>(config.concurrency), loop_.timers());
  if (has_queues(config)) pool_->set_queue(queues_);
}

std::unique_ptr<DatabaseWorker> WorkerProcess::make_worker(const NamedDatabase& database) {
  auto made = std::make_unique<DatabaseWorker>(
      database.name, database.options,
      SharedParts{config_, loop_, random_, processes_, programs_,
                  has_queues(config_) ? &queues_ : nullptr, pool_ ? &*pool_ : nullptr, log_},
      executables());
  made->worker().info = [this, identity = identity_](std::size_t slots, bool is_draining) {
    const auto databases = static_cast<int>(workers_.names().size());
    return identity_json(identity, static_cast<int>(slots), is_draining, databases);
  };
  return made;
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
  take_cluster();
  take_signals();
  take_surroundings();
  tell_watchers();
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
  workers_.on_finished = [this](ExitCode code) { end(code); };
  if (pool_ && has_queues(config_)) workers_.on_draining = [this] { queues_.drain(); };
}

void WorkerProcess::take_cluster() {
  const DatabasesToServe& databases = surroundings_.databases;
  if (!databases.cluster) return serve_databases(databases.listed);
  cluster_connection_ = make_connection(loop_, *databases.cluster);
  cluster_.emplace(*databases.cluster, *cluster_connection_, loop_.timers(), random_, log_);
  cluster_->on_nodes = [this](const std::vector<NamedDatabase>& nodes) { serve_databases(nodes); };
  cluster_->on_refused = [this](ExitCode code, const std::string& reason) {
    if (!knows_databases_) return refuse(code, "--cluster: " + reason);
    log_.warning("cluster_refused", {{"reason", reason}});
  };
  config_.once ? cluster_->ask_within(kOncePatience) : cluster_->ask();
}

void WorkerProcess::serve_databases(const std::vector<NamedDatabase>& databases) {
  const std::string& wanted = surroundings_.databases.of_crontab;
  const bool is_first = !std::exchange(knows_databases_, true);
  const bool is_there = std::any_of(databases.begin(), databases.end(),
                                    [&](const auto& database) { return database.name == wanted; });
  if (is_first && cluster_ && !wanted.empty() && !is_there) {
    return refuse(ExitCode::usage, "--crontab-database: no node is named '" + wanted + '\'');
  }
  workers_.serve_databases(databases);
  const std::vector<std::string> names = workers_.names();
  if (watchers_.status != nullptr) {
    for (const std::string& name : names) watchers_.status->begin_database(name);
  }
  if (cluster_) tell_databases();
}

void WorkerProcess::tell_databases() {
  const std::vector<std::string> names = workers_.names();
  log_.info("databases",
            {{"count", static_cast<std::int64_t>(names.size())}, {"names", name_list(names)}});
}

void WorkerProcess::refuse(ExitCode code, const std::string& reason) {
  log_.error("refused", {{"reason", reason}, {"exit_code", static_cast<std::int64_t>(code)}});
  end(code);
}

// Programs may take their time to say good-bye, unless the worker is forced to end.
void WorkerProcess::end(ExitCode code) {
  if (std::exchange(is_over_, true)) return;
  exit_code_ = code;
  if (cluster_) cluster_->stop();
  if (!has_begun_ || code == ExitCode::forced) return loop_.stop();
  programs_.drain();
  programs_.when_gone([this] { loop_.stop(); });
}

// The workers register once each program has said which tasks it serves.
void WorkerProcess::take_programs() {
  programs_.served_elsewhere = [this] { return tasks_.without_programs(); };
  programs_.on_ready = [this] { begin(); };
  programs_.on_failed = [this](const std::string& reason, bool is_transient) {
    refuse(is_transient ? ExitCode::exhausted : ExitCode::configuration, "--program: " + reason);
  };
  programs_.on_tasks_changed = [this] { serve_tasks(); };
}

// False: the machine could not list the folder now.
bool WorkerProcess::serve_tasks() {
  served_ = tasks_.read();
  workers_.serve(served_);
  return !tasks_.failure() || !tasks_.failure()->is_transient();
}

void WorkerProcess::begin() {
  if (!serve_tasks()) return refuse(ExitCode::exhausted, "--tasks: " + tasks_.failure()->reason);
  has_begun_ = true;
  if (surroundings_.crontab) {
    workers_.load_crontab(surroundings_.databases.of_crontab, std::move(*surroundings_.crontab));
  }
  if (pool_ && !cluster_) tell_databases();
  workers_.start();
}

// A process that has not registered has nothing to drain.
void WorkerProcess::take_stop() {
  if (is_over_) return loop_.stop();
  if (cluster_) cluster_->stop();
  has_begun_ ? workers_.take_signal() : end(ExitCode::drained);
}

void WorkerProcess::take_signals() {
  signals_.on(SIGTERM, [this] { take_stop(); });
  signals_.on(SIGINT, [this] { take_stop(); });
  signals_.on(SIGHUP, [this] { reload(); });
  signals_.on(SIGUSR1, [this] { workers_.tell_running(); });
}

void WorkerProcess::take_surroundings() {
  constexpr pid_t kInit = 1;
  if (getpid() == kInit) zombies_.emplace(loop_, MinderLine::is_ending_orphans);
  if (watchers_.terminal < 0) return;
  terminal_.emplace(loop_, watchers_.terminal,
                    [this] { workers_.drain_within_grace("its terminal was closed"); });
}

void WorkerProcess::reload() {
  service_manager_.begin_reload();
  read_again();
  if (cluster_ && !is_over_) cluster_->ask();
  service_manager_.end_reload();
}

// A file that the worker cannot read leaves the settings from before. No operator sends SIGHUP
// again because descriptors or memory were short, so the worker reads again by itself. New programs
// get the variables, so the worker replaces programs last.
void WorkerProcess::read_again() {
  bool is_read = read_variables_again();
  if (has_begun_) {
    is_read = read_crontab_again() && is_read;
    is_read = serve_tasks() && is_read;
    if (is_read) programs_.replace();
  }
  is_read ? unread_.stop() : unread_.start_in(kUnreadPause);
}

// False, as of the next function: the machine could not read the file now.
bool WorkerProcess::read_variables_again() {
  const auto refusal = surroundings_.variables.read_file();
  if (refusal) log_.warning("env_file_refused", {{"reason", refusal->reason}});
  return !refusal || !refusal->is_transient;
}

bool WorkerProcess::read_crontab_again() {
  if (surroundings_.crontab_path.empty()) return true;
  auto read = read_crontab(surroundings_.crontab_path);
  if (const auto* refusal = std::get_if<FileRefusal>(&read)) {
    log_.warning("crontab_refused", {{"reason", refusal->reason}});
    return !refusal->is_transient;
  }
  workers_.load_crontab(surroundings_.databases.of_crontab,
                        std::get<CrontabItems>(std::move(read)));
  return true;
}

// Jobs of a missing task are left to other workers, until the task is there again.
void WorkerProcess::check_missing_tasks() {
  auto tasks = tasks_.read_again();
  const std::set<std::string>& missing = surroundings_.folder.missing();
  if (tasks != std::exchange(served_, tasks)) {
    log_.warning("tasks_changed", {{"folder", surroundings_.folder.path()},
                                   {"missing", name_list({missing.begin(), missing.end()})}});
    workers_.serve(std::move(tasks));
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
  WorkerState state = workers_.state();
  state.program_refusal = programs_.refusal();
  if (watchers_.status != nullptr) watchers_.status->publish(state);
  if (watchers_.progress != nullptr) watchers_.progress->publish_running(state.running);
  service_manager_.publish(state);
}

}  // namespace pulse
