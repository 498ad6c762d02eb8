// Process member: one process of a group, and its jobs.
//
// Invariants (only the loop's thread reads and writes):
// - `state_` goes from serving to closing or ending, and never back to serving.
// - `deadline_` is the deadline that the minder knows.
#pragma once

#include <string>

#include "task/process/child.hpp"
#include "task/process/execution.hpp"
#include "task/process/jobs_in_hand.hpp"

namespace pulse {

class ProcessGroup;

class ProcessMember final : public JobProcess {
 public:
  explicit ProcessMember(ProcessGroup& group);

  // On failure returns the end for the member's jobs.
  std::optional<ExecutionEnd> start(ProcessLimits limits);

  bool is_busy() const { return in_flight() > 0; }
  bool accepts(const ProcessExecution& execution) const;
  std::size_t in_flight() const { return jobs_.in_flight().size(); }
  std::size_t takes() const { return takes_; }
  bool has_answered() const { return jobs_.has_answered(); }

  void give(ProcessExecution& execution);
  void forget(ProcessExecution& execution) override { jobs_.forget(execution); }
  void tell_to_stop(const ProcessExecution& execution, Duration grace) override;
  void lose_patience(ProcessExecution& execution) override;
  // Ends the process; the jobs in flight fail with `why` in the error.
  void end_because(std::string why);
  // Hands the answers of this iteration to the executor.
  void deliver() { jobs_.deliver(); }
  void flush() { child_.flush(); }
  void ping();
  // The process is idle: closes the process after a while, or now if `is_last`.
  void rest(bool is_last);
  bool was_closed() const { return was_closed_; }

 private:
  enum class State { serving, closing, ending };

  void take_line(std::string_view line);
  void drop(const std::string& why, bool may_be_answer);
  void take_end(const ExecutionEnd& end);
  // Whether any job of the process may go on.
  bool has_other_work() const;
  ExecutionEnd end_of_job(const ExecutionEnd& end) const;
  void close();

  ProcessGroup& group_;
  ProcessChild child_;
  State state_ = State::serving;
  std::string why_;  // why the process is ending
  std::size_t takes_ = 1;
  JobsInHand jobs_;
  TimePoint deadline_{};  // of the minder
  bool was_closed_ = false;
  std::int64_t dropped_lines_ = 0;
  Timer idle_;
};

}  // namespace pulse
