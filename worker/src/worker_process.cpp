#include "worker_process.hpp"

#include <csignal>

#include "executable/executable_starter.hpp"
#include "liveness/identity.hpp"
#include "supervised/fd_limit.hpp"
#include "supervised/orphans.hpp"

namespace pulse {
namespace {

// What the tasks get of this process's limits: what it was started with.
minder::TaskRules task_rules(const Config& config, Log& log) {
  const FdLimit limit =
      raise_fd_limit(config.concurrency * static_cast<int>(1 + config.processes.size()));
  if (limit.now < limit.wanted) {
    log.warning("few_descriptors", {{"limit", static_cast<std::int64_t>(limit.now)},
                                    {"wanted", static_cast<std::int64_t>(limit.wanted)}});
  }
  return {config.may_gain_privileges, limit.before};
}

}  // namespace

WorkerProcess::WorkerProcess(const Config& config, const Surroundings& surroundings,
                             const Watchers& watchers, Log& log)
    : log_(log),
      watchers_(watchers),
      claim_(make_connection(loop_, surroundings.database)),
      finish_(make_connection(loop_, surroundings.database)),
      heartbeat_(make_connection(loop_, surroundings.database)),
      random_(random_source()),
      rules_(task_rules(config, log)),
      functions_(
          [this, options = surroundings.database] { return make_connection(loop_, options); },
          surroundings.database.deadline(), loop_.timers(), random_, log),
      processes_(config.processes, {loop_, surroundings.minder_path, rules_, random_, log}),
      router_(functions_, processes_, surroundings.folder, executables(surroundings), log),
      worker_(config, identity_json(read_identity()), surroundings.database.deadline(),
              {*claim_, *finish_, *heartbeat_}, router_.starter(), loop_.timers(), random_, log),
      service_manager_(watchers.service_manager, loop_.timers(), log) {
  if (!config.processes.empty()) worker_.set_queue(processes_);
}

StartExecution WorkerProcess::executables(const Surroundings& surroundings) {
  if (!surroundings.folder) return {};
  return executable_starter(loop_, *surroundings.folder, surroundings.minder_path, rules_);
}

ExitCode WorkerProcess::run() {
  take_end();
  take_signals();
  tell_watchers();
  worker_.is_process_gone = is_process_gone;
  worker_.serve(router_.read_tasks());
  worker_.start();
  loop_.run();
  // For good: a late signal does not change how this process ends.
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  reap_orphans();
  return exit_code_;
}

void WorkerProcess::take_end() {
  worker_.on_finished = [this](ExitCode code) {
    exit_code_ = code;
    loop_.stop();
  };
}

void WorkerProcess::take_signals() {
  signals_.on(SIGTERM, [this] { worker_.take_signal(); });
  signals_.on(SIGINT, [this] { worker_.take_signal(); });
  signals_.on(SIGHUP, [this] { reload(); });
  signals_.on(SIGUSR1, [this] { worker_.tell_running(); });
}

void WorkerProcess::reload() {
  service_manager_.begin_reload();
  worker_.serve(router_.read_tasks());
  service_manager_.end_reload();
}

void WorkerProcess::tell_watchers() {
  if (watchers_.status != nullptr) turning_.emplace(loop_.timers(), kTurnInterval, nullptr);
  const bool is_watched = watchers_.status != nullptr || watchers_.progress != nullptr ||
                          service_manager_.is_listening();
  if (is_watched) loop_.on_turn = [this] { publish(); };
}

void WorkerProcess::publish() {
  const WorkerState state = worker_.state();
  if (watchers_.status != nullptr) watchers_.status->publish(state);
  if (watchers_.progress != nullptr) watchers_.progress->publish_running(state.running);
  service_manager_.publish(state);
}

}  // namespace pulse
