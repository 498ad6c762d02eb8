// Reports of an execution: the progress that the code of a job tells, and at last how it ended.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

namespace pulse {

// Why the worker ends a task before it ends by itself.
enum class EndReason { none, timeout, stall, cancelled, unreachable, revoked, interrupted };
// In the words of the log and of the lines to processes.
const char* reason_name(EndReason reason);

struct TaskProgress {
  std::optional<double> fraction = {};
  std::optional<std::string> message = {};
  std::optional<std::string> stage = {};
  std::optional<std::string> checkpoint = {};  // JSON text

  [[nodiscard]] bool empty() const noexcept {
    return !fraction && !message && !stage && !checkpoint;
  }
  // The newer report wins, value by value.
  void take_newer(TaskProgress newer);
};

// The least time between two reports of progress.
constexpr std::chrono::milliseconds kProgressInterval{1000};

// Twice within a stall_timeout: a task that reports in time is seen in time.
inline std::chrono::milliseconds progress_interval(
    const std::optional<std::chrono::milliseconds>& stall_timeout) {
  return stall_timeout ? std::min(kProgressInterval, *stall_timeout / 2) : kProgressInterval;
}

struct ExecutionEnd {
  enum class Kind {
    succeeded,        // exit 0
    failed,           // any other exit code but 100
    failed_for_good,  // exit 100: do not retry
    signalled,        // ended by a signal
    not_started,      // could not be executed: `error` says why
    minder_lost,      // the minder was killed; the task was killed too, with an unknown status
    completed,        // a function: it has completed the job itself
    refused,          // a function: it raised an error
    session_lost,     // a function: whether the function has completed the job is not known
    snoozed,          // to be run again after `again_in`, as if the job had not been claimed
    exited,           // a program: it ended, and had no other job
    crashed,          // a program: it ended, and had other jobs
    interrupted,      // a program: new code took its place before the job had ended
    done,             // a program: says that a transaction of its own has completed the job
  };
  enum class StoppedBy {
    nobody,   // the task ended by itself
    worker,   // after terminate() or kill(); the exit status is still the task's own
    silence,  // the minder ended the task: no ping within the limit (this process was stopped)
  };

  Kind kind = Kind::failed;
  StoppedBy stopped_by = StoppedBy::nobody;
  int exit_code = 0;     // of failed and failed_for_good
  int signal = 0;        // of signalled
  std::string sqlstate;  // of refused
  // Of not_started: memory or processes were short, or the file was just being replaced. Release
  // the job, do not fail it.
  bool is_transient = false;
  // The cause and the tail of stderr, at most 8 kB of UTF-8 without NUL; empty on success.
  std::string error;
  std::optional<std::string> result;  // JSON text of the last `result` line
  // JSON text: the work that is left, for the next attempt on failure
  std::optional<std::string> payload;
  std::size_t dropped_lines = 0;  // PULSE_FD lines that were malformed or too long
  std::optional<std::chrono::milliseconds> again_in;  // of snoozed; of failed: not the backoff
  std::optional<std::string> checkpoint;              // of snoozed: JSON text
  std::optional<std::chrono::nanoseconds> ran_for;    // where a queue comes before the run
  // How long the job occupied a slot, where the slot runs many jobs at once.
  std::optional<std::chrono::nanoseconds> occupied_for;
  std::string reason;  // for the log, instead of the kind's words
  // Success and snoozing are the answer of code that knew of the order to stop. (A program that
  // exits with 0 at SIGTERM may have done nothing.)
  bool is_answer = false;
};

// Why the execution ended so, in a few words that quote no output of the task; empty for a success.
std::string kind_of_end(const ExecutionEnd& end);
// The same in one line, with the line of the task's words that tells most, or with the server's
// message, DETAIL and HINT.
std::string cause_of(const ExecutionEnd& end);

// The end of an execution that the worker took out of a task queue before it began.
ExecutionEnd withdrawn_end();

}  // namespace pulse
