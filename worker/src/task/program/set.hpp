// Program set: the processes of one --program: the queue of their jobs, which process runs each
// job, when a process is started, and how new code takes the place of old.
//
// All processes start with the worker and stay. A process that ends is started again, after a
// growing pause if there was no hello; meanwhile its places are gone, and the tasks stay served.
// replace() starts one new process after the other: a new process says hello, then an old process
// retires. A new process that fails ends the replacement, and the old processes go on. At most two
// generations live at any time.
//
// Invariants (only the loop's thread reads and writes):
// - `queues_` holds an execution exactly while its `place` is set.
// - `programs_` has each started process until it has ended: see remove().
// - `to_replace_` counts the old processes without a new process in their place; `candidate_` is
//   the new process before the hello.
// - `tasks_` and `limits_` are of the last accepted hello.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/log/log.hpp"
#include "base/postgres/reconnect.hpp"
#include "jobs/execution.hpp"
#include "task/executable/environment.hpp"
#include "task/executable/variables.hpp"
#include "task/program/process.hpp"

namespace pulse {

struct ProgramSettings {
  EventLoop& loop;
  std::string minder_path;
  minder::TaskRules rules;
  Random random;
  Log& log;
  const TaskVariables* variables = nullptr;         // none: only inherited variables
  WrittenLog* written = nullptr;                    // none: the output of programs is discarded
  std::size_t copies = 1;                           // processes of each program
  Duration start_limit = std::chrono::seconds(60);  // until the hello
  std::optional<Duration> replace_grace;            // of the jobs of a replaced process
  ProgramVariables environment = ProgramVariables::all;
};

// The answers of all programs together.
struct ProgramCallbacks {
  // Why the set cannot serve the tasks of a hello; empty if it can.
  std::function<std::string(const Hello& hello)> refusal_of;
  std::function<void()> on_hello;  // tasks may have changed
  // The first start of a process has failed; transient where the machine could not start it now.
  std::function<void(const std::string& reason, bool is_transient)> on_failed;
  std::function<void()> on_ended;  // a process is gone
  std::function<void()> on_more_places;
  std::function<bool()> may_begin;  // a job more, under a limit on all slots
};

class ProgramSet final : public JobQueue {
 public:
  ProgramSet(ProcessCommand command, const ProgramSettings& settings, ProgramCallbacks callbacks);
  ~ProgramSet() override;

  void start();
  // Each process has said hello.
  bool is_ready() const { return is_ready_; }
  bool has_processes() const { return !programs_.empty(); }
  const std::set<std::string>& tasks() const { return tasks_; }
  // Starts processes with new code in place of these.
  void replace();
  // Why the last replacement failed; empty after a success.
  const std::string& refusal() const { return refusal_; }

  std::unique_ptr<Execution> add(const HeldJob& job, const Registration& registration,
                                 TimePoint alive_as_of, ExecutionCallbacks callbacks);
  std::size_t waiting() const;
  std::size_t in_flight() const;
  // Places for jobs of any task, taken or not.
  std::size_t places() const;
  // How many jobs to claim now, of all tasks together and of one task.
  std::size_t free_places() const;
  std::size_t free_places(const std::string& task) const;
  // Whether the task takes fewer jobs at once than its program.
  bool is_limited(const std::string& task) const;
  void drain();

  // For executions and processes of the set.
  EventLoop& loop() { return settings_.loop; }
  Timers& timers() override { return settings_.loop.timers(); }
  const ProcessCommand& command() const { return command_; }
  Duration idle_limit() const { return idle_limit_; }
  Duration kill_allowance() const { return kill_allowance_; }
  void ping_soon() override { pinging_.start_soon(); }
  bool withdraw(ProcessExecution& execution) override;
  void advance_soon();
  std::string refusal_of(const Hello& hello) const { return callbacks_.refusal_of(hello); }
  void take_hello(ProgramProcess& program);
  void remove(ProgramProcess& program, const ExecutionEnd& end);
  void log_fault(const std::string& program, const std::string& reason);
  void log_dropped(const std::string& program, const std::string& reason, std::int64_t count);
  void log_text(const ProcessExecution& execution, const std::string& program,
                const LoggedText& logged);

 private:
  using Queue = std::list<ProcessExecution*>;

  bool start_one();
  void start_missing();
  void fail_start(const ExecutionEnd& end);
  void refuse(const ExecutionEnd& end);
  void replace_next();
  std::size_t count_running() const;
  bool is_short() const;
  void advance();
  void hand_out();
  std::pair<Queue*, ProgramProcess*> next_job();
  ProgramProcess* free_program(const std::string& task);
  void pause();
  void ping_all();

  const ProcessCommand command_;
  const ProgramSettings settings_;
  const ProgramCallbacks callbacks_;
  Duration idle_limit_;
  Duration kill_allowance_{};

  std::map<std::string, Queue> queues_;  // by task
  std::vector<std::unique_ptr<ProgramProcess>> programs_;
  std::set<std::string> tasks_;
  std::map<std::string, std::size_t> limits_;  // of the tasks that take fewer jobs than the program
  bool is_ready_ = false;
  bool is_draining_ = false;
  bool is_advancing_ = false;
  std::size_t to_replace_ = 0;
  ProgramProcess* candidate_ = nullptr;
  bool is_wanted_again_ = false;  // another replacement, after this one or at the next start
  std::string refusal_;
  std::optional<WrittenLines> logged_;  // the texts that handlers log
  Reconnect backoff_;
  std::size_t last_places_ = 0;
  Timer advancing_;
  Timer restart_;
  Timer pinging_;
};

}  // namespace pulse
