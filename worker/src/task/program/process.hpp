// Program process: one process of a program, and its jobs. The process speaks first: before the
// hello it gets no job.
//
// Invariants (only the loop's thread reads and writes):
// - `state_` only moves forward: starting, serving, retiring, ending; states may be left out.
// - `per_task_` counts the jobs in flight by task.
// - `deadline_` is the deadline that the minder knows.
#pragma once

#include <string>
#include <unordered_map>

#include "task/process/child.hpp"
#include "task/process/execution.hpp"
#include "task/process/jobs_in_hand.hpp"
#include "task/program/line.hpp"

namespace pulse {

class ProgramSet;

class ProgramProcess final : public JobProcess {
 public:
  explicit ProgramProcess(ProgramSet& set);

  // On failure returns the end of the process.
  std::optional<ExecutionEnd> start(ProcessLimits limits, Duration start_limit);

  bool has_said_hello() const { return !hello_.tasks.empty(); }
  bool is_serving() const { return state_ == State::serving; }
  bool is_retiring() const { return state_ == State::retiring; }
  bool has_answered() const { return jobs_.has_answered(); }
  const Hello& hello() const { return hello_; }
  const std::string& name() const { return name_; }
  std::size_t in_flight() const { return jobs_.size(); }
  // How many more jobs the process takes now: of any task, and of this task.
  std::size_t free_places() const;
  std::size_t free_places(const std::string& task) const;

  void give(ProcessExecution& execution);
  // Gets no further job; ends after the last answer, or when `limit` has passed.
  void retire(std::optional<Duration> limit);
  // As retire(), and a process without a hello ends at once.
  void leave();
  // Ends the process at once; the jobs in flight end with `why` in the error.
  void end_because(std::string why);
  // Hands the answers of this iteration to the executor.
  void deliver();
  void flush() { child_.flush(); }
  void ping();

  void forget(ProcessExecution& execution) override;
  void tell_to_stop(const ProcessExecution& execution, Duration grace) override;
  void lose_patience(ProcessExecution& execution) override;

 private:
  enum class State { starting, serving, retiring, ending };

  void take_line(std::string_view line);
  void take_hello(std::string_view line);
  void take_answer(std::string_view line);
  void take_unreadable(std::string_view line, const std::string& why);
  void take_long_line(std::string_view beginning);
  // The job in hand that a line, or the beginning of a line, names; or null.
  ProcessExecution* job_in_line(std::string_view beginning) const;
  void fail_job(ProcessExecution& execution, const std::string& why);
  void end_job(ProcessExecution& execution, ExecutionEnd end);
  void drop(const std::string& why);
  void leave_if_idle();
  void cut_off();
  void take_end(const ExecutionEnd& end);
  ExecutionEnd end_of_jobs(const ExecutionEnd& end) const;
  std::string how_ended(const ExecutionEnd& end) const;

  ProgramSet& set_;
  ProcessChild child_;
  State state_ = State::starting;
  Hello hello_;
  std::string name_;
  std::string why_;             // why the process is being ended
  bool is_cut_off_ = false;     // by the worker, for no fault of the jobs in hand
  bool has_abandoned_ = false;  // a handler did not stop in time, and may still run
  JobsInHand jobs_;
  std::unordered_map<std::string, std::size_t> per_task_;
  TimePoint deadline_{};  // of the minder
  std::int64_t dropped_lines_ = 0;
  Timer hello_limit_;
  Timer limit_;  // of retiring
  Timer close_;  // after the end of file
};

}  // namespace pulse
