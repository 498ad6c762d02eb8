#include "task/process/member.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "task/process/group.hpp"
#include "task/process/line.hpp"

namespace pulse {
namespace {

using namespace std::chrono_literals;

constexpr Duration kProcessKeptIdle = 30s;
// After the end of stdin, and then between SIGTERM and SIGKILL.
constexpr Duration kCloseGrace = 5s;

}  // namespace

ProcessMember::ProcessMember(ProcessGroup& group)
    : group_(group),
      child_(group.loop(), group.command(),
             {[this](std::string_view line) { take_line(line); },
              [this](const std::string& why) { end_because(why); },
              [this](const ExecutionEnd& end) { take_end(end); }}),
      jobs_(group.timers()),
      idle_(group.timers(), [this] {
        if (state_ == State::serving) return close();
        child_.terminate(kCloseGrace);
      }) {}

std::optional<ExecutionEnd> ProcessMember::start(ProcessLimits limits) {
  deadline_ = limits.deadline;
  return child_.start(limits);
}

// An answer of a process names a number alone, so no process has two jobs of one number.
bool ProcessMember::accepts(const ProcessExecution& execution) const {
  return state_ == State::serving && jobs_.size() < takes_ && child_.is_reading() &&
         jobs_.find(execution.job_id()) == nullptr;
}

void ProcessMember::give(ProcessExecution& execution) {
  if (!is_busy()) {
    idle_.stop();
    child_.forget_errors();
  }
  child_.to_write() += execution.line();
  jobs_.add(execution);
  execution.begin(*this);
  if (execution.deadline() != deadline_) ping();
}

void ProcessMember::tell_to_stop(const ProcessExecution& execution, Duration grace) {
  append_cancel_line(child_.to_write(), execution.job_id(), execution.reason(), grace);
  group_.advance_soon();
}

void ProcessMember::lose_patience(ProcessExecution& execution) {
  if (execution.is_lost() && has_other_work()) {
    execution.give_more_time(group_.kill_allowance());
  } else {
    end_because("job " + std::to_string(execution.job_id()) + " did not stop in time");
  }
}

bool ProcessMember::has_other_work() const {
  return std::any_of(jobs_.in_flight().begin(), jobs_.in_flight().end(),
                     [](const auto& entry) { return entry.second->reason() == EndReason::none; });
}

void ProcessMember::end_because(std::string why) {
  if (state_ == State::ending) return;
  state_ = State::ending;
  why_ = std::move(why);
  group_.log_fault(why_);
  child_.terminate(Duration::zero());
}

void ProcessMember::ping() {
  const TimePoint first = jobs_.first_deadline(group_.timers().now() + group_.idle_limit());
  if (first == deadline_) return;
  deadline_ = first;
  child_.set_deadline(first);
}

void ProcessMember::take_line(std::string_view line) {
  if (line.find_first_not_of(" \t\r") == std::string_view::npos) return;
  if (!may_mean_answer(line)) return drop("output that is no line of the protocol", false);
  std::string why;
  auto parsed = parse_process_line(line, why);
  if (!parsed) return drop(why, true);
  if (!parsed->database.empty()) return drop("a line without the id of a job", true);
  if (parsed->takes) {
    takes_ = static_cast<std::size_t>(*parsed->takes);
    return group_.advance_soon();
  }
  ProcessExecution* execution = jobs_.find(parsed->job_id);
  if (execution == nullptr) return drop("an answer for a job that it does not have", false);
  if (!parsed->progress.empty()) execution->take_progress(std::move(parsed->progress));
  if (parsed->payload) execution->take_payload(std::move(*parsed->payload));
  if (!parsed->end) return;
  jobs_.answer(*execution, std::move(*parsed->end));
  group_.advance_soon();
}

// A line that may have been an answer leaves a job behind that would never end.
void ProcessMember::drop(const std::string& why, bool may_be_answer) {
  // At each doubling, so that a flood is no flood in the log.
  if (std::has_single_bit(static_cast<std::uint64_t>(++dropped_lines_))) {
    group_.log_dropped(why, dropped_lines_);
  }
  if (may_be_answer) end_because("it wrote " + why);
}

void ProcessMember::rest(bool is_last) {
  if (state_ != State::serving) return;
  if (is_last) return close();
  if (!idle_.is_running()) idle_.start_in(kProcessKeptIdle);
}

void ProcessMember::close() {
  state_ = State::closing;
  was_closed_ = true;
  child_.close_input();
  idle_.start_in(kCloseGrace);
}

ExecutionEnd ProcessMember::end_of_job(const ExecutionEnd& end) const {
  ExecutionEnd told = end;
  if (end.kind == ExecutionEnd::Kind::not_started || end.kind == ExecutionEnd::Kind::minder_lost)
    return told;
  // The exit code of the process says nothing about one job of many.
  if (end.kind != ExecutionEnd::Kind::signalled) told.kind = ExecutionEnd::Kind::failed;
  if (!why_.empty()) {
    told.error = "its process was ended: " + why_;
    told.reason = "process ended";
  } else if (end.kind == ExecutionEnd::Kind::signalled) {
    told.error = "its process was " + end.error;
  } else {
    told.error =
        "its process exited with code " + std::to_string(end.exit_code) + " before it answered";
  }
  told.error = child_.with_errors(std::move(told.error));
  return told;
}

void ProcessMember::take_end(const ExecutionEnd& end) {
  state_ = State::ending;
  deliver();
  jobs_.end_all(end_of_job(end));
  group_.remove(*this, end);
}

}  // namespace pulse
