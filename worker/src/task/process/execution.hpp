// Process execution: one job of a persistent process, as the executor knows it: first in a queue,
// then in flight in a process.
#pragma once

#include <list>
#include <optional>
#include <string>

#include "base/loop/timers.hpp"
#include "jobs/execution.hpp"

namespace pulse {

class ProcessExecution;

// The process that runs a job.
class JobProcess {
 public:
  virtual ~JobProcess() = default;
  virtual void forget(ProcessExecution& execution) = 0;
  virtual void tell_to_stop(const ProcessExecution& execution, Duration grace) = 0;
  // The job did not stop in time.
  virtual void lose_patience(ProcessExecution& execution) = 0;
};

// The owner of the queue in which a job waits for a process.
class JobQueue {
 public:
  virtual ~JobQueue() = default;
  virtual Timers& timers() = 0;
  virtual void ping_soon() = 0;
  // True: the execution was in the queue, and is not any more.
  virtual bool withdraw(ProcessExecution& execution) = 0;
};

class ProcessExecution final : public Execution {
 public:
  // `line` tells a process the job.
  ProcessExecution(JobQueue& queue, const HeldJob& job, std::string line, Duration silence_limit,
                   TimePoint alive_as_of, ExecutionCallbacks callbacks);
  ~ProcessExecution() override;
  ProcessExecution(const ProcessExecution&) = delete;
  ProcessExecution& operator=(const ProcessExecution&) = delete;

  void ping(TimePoint alive_as_of) override;
  void explain(EndReason reason) override { reason_ = reason; }
  void terminate(Duration grace) override;
  bool take_back() override;

  std::int64_t job_id() const { return job_id_; }
  // As the job's database is named; see TaskInput.
  const std::string& database() const { return database_; }
  TimePoint arrived_at() const { return arrived_at_; }
  const std::string& line() const { return line_; }
  // When the process is to end, unless there is a later sign of life.
  TimePoint deadline() const { return alive_as_of_ + silence_limit_; }
  EndReason reason() const { return reason_; }
  const std::string& task() const { return task_; }
  int attempt() const { return attempt_; }
  // The claim is over, so that the job must not go on for any time.
  bool is_lost() const { return is_lost_; }
  // The other jobs of the process may go on if this job stops within `grace`.
  void give_more_time(Duration grace);

  // The place in the queue of the group; only the group writes `place`.
  std::optional<std::list<ProcessExecution*>::iterator> place;

  void begin(JobProcess& process);
  void take_progress(TaskProgress progress);
  // The newest payload counts, and only if the job fails.
  void take_payload(std::string payload) { payload_ = std::move(payload); }
  // Keeps the end until deliver(), which destroys this object.
  void end_with(ExecutionEnd end);
  void deliver(std::optional<std::chrono::nanoseconds> occupied_for);

 private:
  void lose_patience();
  void report_progress();

  JobQueue& queue_;
  const std::int64_t job_id_;
  const std::string database_;
  const std::string task_;
  const int attempt_;
  const TimePoint arrived_at_;  // at this worker
  std::string line_;
  const Duration silence_limit_;
  TimePoint alive_as_of_;
  const Duration progress_interval_;
  ExecutionCallbacks callbacks_;
  JobProcess* process_ = nullptr;
  TimePoint began_at_{};
  EndReason reason_ = EndReason::none;
  bool is_told_ = false;
  bool is_lost_ = false;
  bool has_last_time_ = false;  // see give_more_time()
  std::optional<ExecutionEnd> end_;
  TaskProgress progress_;
  std::optional<std::string> payload_;
  TimePoint not_before_{};
  Timer next_progress_;
  Timer patience_;
};

}  // namespace pulse
