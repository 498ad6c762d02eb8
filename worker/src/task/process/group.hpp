// Process group: the processes of one task: the queue of its jobs, which process runs each job, and
// when a process is started.
//
// A job goes to the member with the fewest jobs in hand; when no member has places left, the group
// starts another process, as long as there is a slot. A process that could not be started, or that
// ended before any answer, makes the next start wait for a random part of a growing pause.
//
// Invariants (only the loop's thread reads and writes):
// - `queue_` holds an execution exactly while its `place` is set. withdraw() removes both.
// - `members_` has each started process until it has ended: see remove().
// - While `restart_` runs, no process is started; `starts_` bounds the starts of one iteration.
#pragma once

#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/log/log.hpp"
#include "base/postgres/reconnect.hpp"
#include "jobs/execution.hpp"
#include "task/executable/variables.hpp"
#include "task/process/child.hpp"
#include "task/process/member.hpp"

namespace pulse {

struct ProcessSettings {
  EventLoop& loop;
  std::string minder_path;
  minder::TaskRules rules;
  Random random;
  Log& log;
  const TaskVariables* variables = nullptr;  // none: only inherited variables
  WrittenLog* written = nullptr;             // none: the output of processes is discarded
};

// The executor's answers about slots; see TaskQueue.
struct ProcessSlots {
  std::function<bool()> has_free_slot;
  std::function<std::optional<TimePoint>()> slot_awaited_since;
};

class ProcessGroup final : public JobQueue {
 public:
  ProcessGroup(ProcessCommand command, const ProcessSettings& settings, ProcessSlots slots,
               std::function<void()> on_more_extra);
  ~ProcessGroup() override;

  std::unique_ptr<Execution> add(const HeldJob& job, const Registration& registration,
                                 TimePoint alive_as_of, ExecutionCallbacks callbacks);
  bool has_queue() const { return !queue_.empty(); }
  std::size_t busy() const;
  std::size_t waiting() const { return queue_.size(); }
  std::size_t reserved() const;
  std::size_t extra() const;
  void drain();

  // For executions and members of the group.
  EventLoop& loop() { return settings_.loop; }
  Timers& timers() override { return settings_.loop.timers(); }
  const ProcessCommand& command() const { return command_; }
  // How long a process without a job outlives a loop that stands still.
  Duration idle_limit() const { return idle_limit_; }
  Duration kill_allowance() const { return kill_allowance_; }
  void advance_soon();
  void ping_soon() override { pinging_.start_soon(); }
  bool withdraw(ProcessExecution& execution) override;
  // The process of `member` has ended like this.
  void remove(ProcessMember& member, const ExecutionEnd& end);
  void log_fault(const std::string& reason);
  void log_dropped(const std::string& reason, std::int64_t count);

 private:
  void advance();
  void hand_out();
  bool must_wait(const ProcessExecution& execution) const;
  ProcessMember* free_member(const ProcessExecution& execution);
  ProcessMember* start_member();
  void pause();
  void ping_all();

  const ProcessCommand command_;
  const ProcessSettings settings_;
  const ProcessSlots slots_;
  const std::function<void()> on_more_extra_;
  Duration idle_limit_{};
  Duration ping_pause_{};
  Duration kill_allowance_{};

  std::list<ProcessExecution*> queue_;
  std::vector<std::unique_ptr<ProcessMember>> members_;
  Reconnect backoff_;
  bool is_advancing_ = false;
  bool is_draining_ = false;
  int starts_ = 0;  // in this iteration
  std::size_t last_extra_ = 0;
  Timer advancing_;
  Timer restart_;
  Timer pinging_;
};

}  // namespace pulse
