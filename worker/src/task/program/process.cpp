#include "task/program/process.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "task/program/set.hpp"

namespace pulse {
namespace {

using namespace std::chrono_literals;

// After end of file, and then between SIGTERM and SIGKILL.
constexpr Duration kExitGrace = 5s;
constexpr const char* kUnknownJob = "an answer for a job that it does not have";

ExecutionEnd end_of_kind(ExecutionEnd::Kind kind, std::string error, std::string reason) {
  ExecutionEnd end;
  end.kind = kind;
  end.error = std::move(error);
  end.reason = std::move(reason);
  return end;
}

}  // namespace

ProgramProcess::ProgramProcess(ProgramSet& set)
    : set_(set),
      child_(set.loop(), set.command(),
             {[this](std::string_view line) { take_line(line); },
              [this](const std::string& why) { end_because(why); },
              [this](const ExecutionEnd& end) { take_end(end); },
              [this](std::string_view beginning) { take_long_line(beginning); }}),
      name_(set.command().task),
      jobs_(set.timers()),
      hello_limit_(set.timers(), [this] { end_because("it has not said hello in time"); }),
      limit_(set.timers(), [this] { cut_off(); }),
      close_(set.timers(), [this] { child_.terminate(kExitGrace); }) {}

std::optional<ExecutionEnd> ProgramProcess::start(ProcessLimits limits, Duration start_limit) {
  deadline_ = limits.deadline;
  hello_limit_.start_in(start_limit);
  return child_.start(limits);
}

std::size_t ProgramProcess::free_places() const {
  if (state_ != State::serving || !child_.is_reading()) return 0;
  return hello_.takes - std::min(hello_.takes, in_flight());
}

std::size_t ProgramProcess::free_places(const std::string& task) const {
  const auto takes = hello_.tasks.find(task);
  if (takes == hello_.tasks.end()) return 0;
  const auto has = per_task_.find(task);
  const std::size_t taken = has == per_task_.end() ? 0 : has->second;
  return std::min(free_places(), takes->second - std::min(takes->second, taken));
}

void ProgramProcess::give(ProcessExecution& execution) {
  if (jobs_.in_flight().empty()) child_.forget_errors();
  child_.to_write() += execution.line();
  jobs_.add(execution);
  ++per_task_[execution.task()];
  execution.begin(*this);
  if (execution.deadline() < deadline_) ping();
}

void ProgramProcess::forget(ProcessExecution& execution) {
  if (jobs_.forget(execution)) --per_task_[execution.task()];
}

void ProgramProcess::tell_to_stop(const ProcessExecution& execution, Duration grace) {
  append_program_cancel_line(child_.to_write(), {execution.job_id(), execution.database()},
                             execution.reason(), grace);
  set_.advance_soon();
}

// A handler that ignores the order to stop costs the program the place, and no other job the end.
// But a job after the end of the claim, or a job to be killed, must not go on: then the other jobs
// are interrupted, which is no crash of theirs.
void ProgramProcess::lose_patience(ProcessExecution& execution) {
  if (execution.is_lost() && jobs_.in_flight().size() > 1) {
    return execution.give_more_time(set_.kill_allowance());
  }
  const std::string why = "job " + std::to_string(execution.job_id()) + " did not stop in time";
  const EndReason reason = execution.reason();
  if (reason == EndReason::revoked || reason == EndReason::unreachable) {
    is_cut_off_ = true;
    return end_because(why);
  }
  has_abandoned_ = true;
  set_.log_fault(name_, why);
  ExecutionEnd end = end_of_kind(ExecutionEnd::Kind::failed, "its handler did not stop in time",
                                 "did not stop in time");
  end.stopped_by = ExecutionEnd::StoppedBy::worker;
  end_job(execution, std::move(end));
  if (state_ == State::serving) retire(std::nullopt);
  set_.advance_soon();
}

void ProgramProcess::retire(std::optional<Duration> limit) {
  if (state_ != State::serving) return;
  state_ = State::retiring;
  if (limit) limit_.start_in(*limit);
  leave_if_idle();
  set_.advance_soon();
}

void ProgramProcess::leave() {
  state_ == State::starting ? end_because("the worker ends") : retire(std::nullopt);
}

// End of file behind the last answer. An abandoned handler would run on.
void ProgramProcess::leave_if_idle() {
  if (state_ != State::retiring || in_flight() > 0 || close_.is_running()) return;
  limit_.stop();
  if (has_abandoned_) return child_.terminate(kExitGrace);
  child_.close_input();
  close_.start_in(kExitGrace);
}

// The jobs in hand run again once the process has ended.
void ProgramProcess::cut_off() {
  is_cut_off_ = true;
  why_ = "new code took its place";
  child_.terminate(kExitGrace);
}

void ProgramProcess::end_because(std::string why) {
  if (state_ == State::ending) return;
  state_ = State::ending;
  why_ = std::move(why);
  set_.log_fault(name_, why_);
  child_.terminate(Duration::zero());
}

void ProgramProcess::ping() {
  const TimePoint first = jobs_.first_deadline(set_.timers().now() + set_.idle_limit());
  if (first == deadline_) return;
  deadline_ = first;
  child_.set_deadline(first);
}

void ProgramProcess::take_line(std::string_view line) {
  if (line.find_first_not_of(" \t\r") == std::string_view::npos || state_ == State::ending) return;
  state_ == State::starting ? take_hello(line) : take_answer(line);
}

void ProgramProcess::take_hello(std::string_view line) {
  std::string why;
  auto hello = parse_hello(line, why);
  if (!hello) return end_because("it wrote " + why);
  why = set_.refusal_of(*hello);
  if (!why.empty()) return end_because(why);
  hello_limit_.stop();
  hello_ = std::move(*hello);
  if (!hello_.name.empty()) name_ = hello_.name;
  state_ = State::serving;
  set_.take_hello(*this);
}

void ProgramProcess::take_answer(std::string_view line) {
  std::string why;
  auto parsed = parse_process_line(line, why);
  if (!parsed) return take_unreadable(line, why);
  if (parsed->takes) return drop("a number of jobs outside of its hello");
  ProcessExecution* execution = jobs_.find(parsed->job_id, parsed->database);
  if (execution == nullptr) return drop(kUnknownJob);
  if (parsed->logged) set_.log_text(*execution, name_, *parsed->logged);
  if (!parsed->progress.empty()) execution->take_progress(std::move(parsed->progress));
  if (parsed->payload) execution->take_payload(std::move(*parsed->payload));
  if (parsed->is_done && !parsed->end) {
    end_job(*execution,
            end_of_kind(ExecutionEnd::Kind::done, "its transaction did not commit", {}));
  } else if (parsed->end) {
    end_job(*execution, std::move(*parsed->end));
  }
}

// Only a line with the name of a job in hand, or of nobody's job, leaves no job without an end.
void ProgramProcess::take_unreadable(std::string_view line, const std::string& why) {
  ProcessExecution* execution = job_in_line(line);
  if (execution != nullptr) return fail_job(*execution, "it answered with " + why);
  if (names_text_as_job(line)) return drop(kUnknownJob);
  std::string ignored;
  end_because("it wrote " + (parse_hello(line, ignored) ? "a second hello" : why));
}

void ProgramProcess::take_long_line(std::string_view beginning) {
  ProcessExecution* execution = job_in_line(beginning);
  if (execution != nullptr) {
    return fail_job(*execution, "it answered with a line longer than 1 MB");
  }
  end_because("it wrote a line longer than 1 MB");
}

ProcessExecution* ProgramProcess::job_in_line(std::string_view beginning) const {
  const auto job = job_of_line(beginning);
  return job ? jobs_.find(job->id, job->database) : nullptr;
}

void ProgramProcess::fail_job(ProcessExecution& execution, const std::string& why) {
  end_job(execution, end_of_kind(ExecutionEnd::Kind::failed, why, why));
}

void ProgramProcess::end_job(ProcessExecution& execution, ExecutionEnd end) {
  --per_task_[execution.task()];
  jobs_.answer(execution, std::move(end));
  set_.advance_soon();
}

// At each doubling, so that a flood is no flood in the log.
void ProgramProcess::drop(const std::string& why) {
  if (std::has_single_bit(static_cast<std::uint64_t>(++dropped_lines_))) {
    set_.log_dropped(name_, why, dropped_lines_);
  }
}

void ProgramProcess::deliver() {
  jobs_.deliver();
  leave_if_idle();
}

// A job alone in the process has most likely ended it. Of several jobs any may have, so each job
// ends as if the worker was lost.
ExecutionEnd ProgramProcess::end_of_jobs(const ExecutionEnd& end) const {
  using Kind = ExecutionEnd::Kind;
  ExecutionEnd told = end;
  if (end.stopped_by == ExecutionEnd::StoppedBy::silence) return told;
  std::string error = "its program exited with code " + std::to_string(end.exit_code);
  if (end.kind == Kind::signalled || end.kind == Kind::minder_lost)
    error = "its program: " + end.error;
  if (!why_.empty()) error = "its program was ended: " + why_;
  told.error = child_.with_errors(std::move(error));
  told.kind = jobs_.in_flight().size() == 1 ? Kind::exited : Kind::crashed;
  if (is_cut_off_) told.kind = Kind::interrupted;
  told.reason = "program ended";
  return told;
}

// A program says hello in work(): the end of its code before that is most likely a call that is
// missing.
std::string ProgramProcess::how_ended(const ExecutionEnd& end) const {
  using Kind = ExecutionEnd::Kind;
  if (!why_.empty()) return why_;
  if (end.kind == Kind::not_started || end.kind == Kind::minder_lost) return end.error;
  const std::string how = end.signal != 0 ? "signal " + std::to_string(end.signal)
                                          : "exit code " + std::to_string(end.exit_code);
  if (has_said_hello()) return how;
  const bool has_returned = end.signal == 0 && end.exit_code == 0;
  return "it ended before its hello" + std::string(has_returned ? ", it never called work()" : "") +
         ": " + how;
}

void ProgramProcess::take_end(const ExecutionEnd& end) {
  state_ = State::ending;
  deliver();
  jobs_.end_all(end_of_jobs(end));
  per_task_.clear();
  ExecutionEnd whole = end;
  whole.error = child_.with_errors(how_ended(end));
  set_.remove(*this, whole);
}

}  // namespace pulse
