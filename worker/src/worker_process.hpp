// Worker process: the process pulse-worker: the workers of its databases on a real loop, with real
// connections, tasks and signals, and the parts that watch the workers from outside.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/loop/interval_timer.hpp"
#include "base/loop/signals.hpp"
#include "base/postgres/connection.hpp"
#include "config.hpp"
#include "database_worker.hpp"
#include "liveness/cluster_nodes.hpp"
#include "liveness/identity.hpp"
#include "observe/progress_summary.hpp"
#include "observe/service_manager.hpp"
#include "observe/status.hpp"
#include "observe/terminal_watch.hpp"
#include "surroundings.hpp"
#include "task/executable/starter.hpp"
#include "task/process/tasks.hpp"
#include "task/program/tasks.hpp"
#include "task/queues.hpp"
#include "task/served.hpp"
#include "task/supervised/zombies.hpp"
#include "worker_group.hpp"

namespace pulse {

// The parts that hear the worker's state at the end of each iteration of the loop.
struct Watchers {
  Status* status = nullptr;
  ProgressSummary* progress = nullptr;
  ServiceManager::Wishes service_manager;
  int terminal = -1;  // that the log is written to, if there is one
};

class WorkerProcess {
 public:
  WorkerProcess(const Config& config, Surroundings& surroundings, const Watchers& watchers,
                Log& log);
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  // Returns when the worker has finished.
  ExitCode run();

 private:
  std::unique_ptr<DatabaseWorker> make_worker(const NamedDatabase& database);
  StartExecution executables();
  ProgramSettings program_settings(const Config& config);
  void take_end();
  void take_cluster();
  void serve_databases(const std::vector<NamedDatabase>& databases);
  void tell_databases();
  void refuse(ExitCode code, const std::string& reason);
  void take_programs();
  void begin();
  bool serve_tasks();
  void take_stop();
  void end(ExitCode code);
  void take_signals();
  void take_surroundings();
  void reload();
  void read_again();
  bool read_variables_again();
  bool read_crontab_again();
  void check_missing_tasks();
  void tell_watchers();
  void publish();

  Log& log_;
  const Config& config_;
  Surroundings& surroundings_;
  const Watchers watchers_;
  const SystemClock clock_;
  EventLoop loop_{clock_};
  const Random random_;
  const Identity identity_;
  const minder::TaskRules rules_;
  WrittenLog written_;
  std::vector<std::string> served_;  // by the folder and the processes
  Timer missing_;                    // checks whether a missing task is there again
  Timer unread_;                     // reads again what the machine could not read
  ProcessTasks processes_;
  ProgramTasks programs_;
  TaskQueues queues_;
  ServedTasks tasks_;
  std::optional<SlotPool> pool_;  // of several databases
  WorkerGroup workers_;
  std::unique_ptr<Connection> cluster_connection_;
  std::optional<ClusterNodes> cluster_;
  Signals signals_{loop_};
  ServiceManager service_manager_;
  std::optional<IntervalTimer> iterating_;  // also when there is nothing to do
  std::optional<Zombies> zombies_;          // of a container whose PID 1 this is
  std::optional<TerminalWatch> terminal_;
  ExitCode exit_code_ = ExitCode::drained;
  bool has_begun_ = false;  // the worker registers
  bool knows_databases_ = false;
  bool is_over_ = false;
};

}  // namespace pulse
