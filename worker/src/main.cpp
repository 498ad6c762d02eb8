#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <memory>
#include <random>

#include "executable/executable_starter.hpp"
#include "function/function_tasks.hpp"
#include "liveness/identity.hpp"
#include "log/terminal.hpp"
#include "loop/interval_timer.hpp"
#include "loop/signals.hpp"
#include "observe/progress_summary.hpp"
#include "observe/service_manager.hpp"
#include "observe/status.hpp"
#include "process/process_tasks.hpp"
#include "supervised/fd_limit.hpp"
#include "supervised/minder_path.hpp"
#include "supervised/orphans.hpp"
#include "worker.hpp"

namespace pulse {
namespace {

int end_early(ExitCode code, const std::string& text) {
  std::fputs(text.c_str(), code == ExitCode::drained ? stdout : stderr);
  return static_cast<int>(code);
}

// One engine for all copies: connections that drew the same delays would come back together.
Random random_source() {
  const auto engine = std::make_shared<std::mt19937_64>(std::random_device{}());
  return [engine] { return std::uniform_real_distribution<double>(0.0, 1.0)(*engine); };
}

// What the folder and the processes serve now; what the folder does not serve is said.
std::vector<std::string> read_tasks(const std::optional<TasksFolder>& folder,
                                    const ProcessTasks& processes, Log& log) {
  std::vector<std::string> tasks = processes.names();
  if (!folder) return tasks;
  TasksFolder::Listing listing = folder->list();
  for (const TaskRefusal& refusal : listing.refusals) {
    log.warning("task_refused", {{"reason", refusal.reason}});
  }
  const auto count = static_cast<std::int64_t>(listing.identifiers.size());
  log.write(count == 0 ? LogLevel::warning : LogLevel::info, "tasks",
            {{"folder", folder->path()}, {"count", count}});
  tasks.insert(tasks.end(), listing.identifiers.begin(), listing.identifiers.end());
  return tasks;
}

// A task that has a handler is a function, whatever stands in the folder.
StartExecution starter(FunctionTasks& functions, ProcessTasks& processes, EventLoop& loop,
                       const std::optional<TasksFolder>& folder, const std::string& minder_path,
                       const minder::TaskRules& rules) {
  StartExecution executables;
  if (folder) executables = executable_starter(loop, *folder, minder_path, rules);
  return [&functions, &processes, executables](const HeldJob& job, const Registration& registration,
                                               TimePoint alive_as_of,
                                               ExecutionCallbacks callbacks) -> ExecutionStart {
    if (job.job.has_handler) return functions.start(job, std::move(callbacks));
    if (processes.takes(job)) {
      return processes.start(job, registration, alive_as_of, std::move(callbacks));
    }
    if (!executables) return {nullptr, false, "its task has no handler any more"};
    return executables(job, registration, alive_as_of, std::move(callbacks));
  };
}

// What the tasks get of this process's limits: what it was started with.
minder::TaskRules task_rules(const Config& config, Log& log) {
  const FdLimit files =
      raise_fd_limit(config.concurrency * static_cast<int>(1 + config.processes.size()));
  if (files.now < files.wanted) {
    log.warning("few_descriptors", {{"limit", static_cast<std::int64_t>(files.now)},
                                    {"wanted", static_cast<std::int64_t>(files.wanted)}});
  }
  return {config.may_gain_privileges, files.before};
}

// Who watches this process from outside.
struct Watchers {
  Status* status = nullptr;
  ProgressSummary* progress = nullptr;
  ServiceManager::Wishes service_manager;
};

ExitCode run(const Config& config, const ConnectOptions& options,
             const std::optional<TasksFolder>& folder, const std::string& minder_path,
             const Watchers& watchers, Log& log) {
  const SystemClock clock;
  EventLoop loop(clock);
  const auto claim = make_connection(loop, options);
  const auto finish = make_connection(loop, options);
  const auto heartbeat = make_connection(loop, options);
  const Random random = random_source();
  FunctionTasks functions([&] { return make_connection(loop, options); }, options.deadline(),
                          loop.timers(), random, log);
  const minder::TaskRules rules = task_rules(config, log);
  ProcessTasks processes(config.processes, {loop, minder_path, rules, random, log});
  Worker worker(
      config, identity_json(read_identity()), options.deadline(), {*claim, *finish, *heartbeat},
      starter(functions, processes, loop, folder, minder_path, rules), loop.timers(), random, log);
  worker.is_process_gone = is_process_gone;
  ExitCode exit_code = ExitCode::drained;
  worker.on_finished = [&](ExitCode code) {
    exit_code = code;
    loop.stop();
  };
  Signals signals(loop);
  signals.on(SIGTERM, [&] { worker.stop(); });
  signals.on(SIGINT, [&] { worker.stop(); });
  if (!config.processes.empty()) worker.set_queue(processes);
  ServiceManager service_manager(watchers.service_manager, loop.timers(), log);
  signals.on(SIGHUP, [&] {
    service_manager.begin_reload();
    worker.serve(read_tasks(folder, processes, log));
    service_manager.end_reload();
  });
  signals.on(SIGUSR1, [&] { worker.tell_running(); });
  std::optional<IntervalTimer> turning;  // also when there is nothing to do
  if (watchers.status != nullptr) turning.emplace(loop.timers(), kTurnInterval, nullptr);
  if (watchers.status != nullptr || watchers.progress != nullptr ||
      service_manager.is_listening()) {
    loop.on_turn = [&] {
      const WorkerState state = worker.state();
      if (watchers.status != nullptr) watchers.status->publish(state);
      if (watchers.progress != nullptr) watchers.progress->publish_running(state.running);
      service_manager.publish(state);
    };
  }
  worker.serve(read_tasks(folder, processes, log));
  worker.start();
  loop.run();
  reap_orphans();
  return exit_code;
}

int run_process(const Config& config) {
  // Before any thread is started: these read, borrow and take environment variables.
  Watchers watchers;
  watchers.service_manager = ServiceManager::take_wishes();
  auto options = ConnectOptions::read(config.database, "pulse-worker " + config.name);
  if (const auto* problem = std::get_if<std::string>(&options)) {
    return end_early(ExitCode::usage, "--database: " + *problem + "\n");
  }
  TaskRefusal refusal;
  const auto folder = TasksFolder::open(config.tasks, refusal);
  const bool may_be_missing =
      refusal.kind == TaskRefusal::Kind::not_found && !config.is_folder_wanted;
  if (!folder && !may_be_missing) {
    return end_early(ExitCode::configuration, "--tasks: " + refusal.reason + "\n");
  }
  const std::string minder_path = find_minder();
  if (minder_path.empty()) {
    return end_early(ExitCode::configuration, "pulse-minder is not installed with pulse-worker\n");
  }
  // What a killed minder leaves behind comes to this process to be reaped.
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  std::signal(SIGPIPE, SIG_IGN);
  const SystemClock clock;
  const Terminal terminal =
      Terminal::look(STDERR_FILENO, [](const char* name) { return getenv(name); });
  ProgressSummary progress(clock, [&] { return terminal.columns(); });
  Log log(config.log_format, config.log_level, STDERR_FILENO,
          terminal.takes_colour(config.log_format) ? LogColour::by_outcome : LogColour::none);
  std::unique_ptr<Status> status;
  if (config.http) {
    auto started = Status::start(*config.http, clock, log);
    if (const auto* problem = std::get_if<std::string>(&started)) {
      return end_early(ExitCode::configuration, "--http: " + *problem + "\n");
    }
    status = std::move(std::get<std::unique_ptr<Status>>(started));
  }
  watchers.status = status.get();
  if (config.once && terminal.takes_rewriting(config.log_format)) {
    watchers.progress = &progress;
    progress.show(log);
  }
  const ExitCode code =
      run(config, std::get<ConnectOptions>(options), folder, minder_path, watchers, log);
  log.forget_listeners();
  return static_cast<int>(code);
}

}  // namespace
}  // namespace pulse

int main(int argc, char** argv) {
  auto parsed = pulse::parse_command_line(argc, argv);
  if (const auto* early = std::get_if<pulse::EarlyExit>(&parsed)) {
    return pulse::end_early(early->code, early->text);
  }
  return pulse::run_process(std::get<pulse::Config>(parsed));
}
