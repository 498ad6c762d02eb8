// Jobs in hand: the jobs that one process has, from the line that gives the job to the delivery of
// the answer.
//
// Invariants (only the loop's thread reads and writes):
// - A job of the process is in `in_flight_`, or in `answered_` from the answer until deliver().
//   forget() removes a job from both.
// - Jobs of two databases may have the same id; the job of one database has an id once.
#pragma once

#include <string_view>
#include <unordered_map>
#include <vector>

#include "task/process/execution.hpp"

namespace pulse {

class JobsInHand {
 public:
  using InFlight = std::unordered_multimap<std::int64_t, ProcessExecution*>;

  explicit JobsInHand(Timers& timers) : timers_(timers) {}

  const InFlight& in_flight() const { return in_flight_; }
  // Answered jobs count until deliver().
  std::size_t size() const { return in_flight_.size() + answered_.size(); }
  // The job in flight with this id in this database, or null.
  ProcessExecution* find(std::int64_t job_id, std::string_view database) const;
  // The first job in flight with this id, of any database, or null.
  ProcessExecution* find(std::int64_t job_id) const;
  // Whether any job of the process has ever been answered.
  bool has_answered() const { return has_answered_; }

  void add(ProcessExecution& execution);
  // Keeps the end of a job in flight until deliver().
  void answer(ProcessExecution& execution, ExecutionEnd end);
  // Hands the answers of this iteration to the executor.
  void deliver();
  // The process has ended: each job in flight ends so, now.
  void end_all(const ExecutionEnd& end);
  // True: the job was in flight.
  bool forget(ProcessExecution& execution);

  // When the process is to end unless a job gives a later sign of life; at most `latest`.
  TimePoint first_deadline(TimePoint latest) const;

 private:
  InFlight::const_iterator place_of(const ProcessExecution& execution) const;

  Timers& timers_;
  InFlight in_flight_;
  std::vector<ProcessExecution*> answered_;
  TimePoint busy_since_{};  // since then no answer was delivered
  bool has_answered_ = false;
};

}  // namespace pulse
