// Outcome: how one claim ended, as the worker reports it to the server.
#pragma once

#include <optional>
#include <string>

#include "base/loop/duration.hpp"
#include "jobs/job.hpp"

namespace pulse {

struct Outcome {
  enum class Kind {
    complete,
    fail,
    fail_late,  // at the job's timeout or stall_timeout
    interrupt,  // the worker stood still or was cut off: no fault of the task
    died,       // with the program that ran the job
    release,    // never started: the attempt is given back
    snooze,     // again later: the attempt is given back
  };

  ClaimKey claim;
  Kind kind = Kind::complete;
  std::optional<std::string> result;  // of complete: JSON text; of snooze: the checkpoint
  std::string error;                  // of fail: kept with the job
  bool may_retry = true;              // of fail
  std::string reason;                 // in few words, for the log; never a text that a task wrote
  std::chrono::nanoseconds ran_for{};
  bool is_unsure = false;  // the server may have accepted an end of this claim already
  std::optional<Duration> again_in = {};    // of snooze; of fail: instead of the backoff
  std::string cause = {};                   // of fail_late and interrupt, in the server's words
  std::optional<std::string> payload = {};  // of both: JSON text, instead of the job's
  // Of fail: the code says that it has completed the job. The server knows of the job if not.
  bool is_done = false;
  bool is_cancelled = false;  // of fail: the server was asked to cancel the job, and records that

  // Reported with a cause.
  bool is_late() const {
    return kind == Kind::fail_late || kind == Kind::interrupt || kind == Kind::died;
  }

  static Outcome completed(ClaimKey claim, std::optional<std::string> result) {
    return {claim, Kind::complete, std::move(result), {}, true, {}, {}, false};
  }
  // Of a failure that stands for a transaction that did not commit, where it had committed.
  Outcome as_completed() const {
    Outcome outcome = completed(claim, {});
    outcome.ran_for = ran_for;
    return outcome;
  }
  static Outcome failed(ClaimKey claim, std::string error, bool may_retry, std::string reason) {
    return {claim, Kind::fail, {}, std::move(error), may_retry, std::move(reason), {}, false};
  }
  static Outcome cancelled(ClaimKey claim, std::string error) {
    Outcome outcome = failed(claim, std::move(error), /*may_retry=*/false, "cancelled");
    outcome.is_cancelled = true;
    return outcome;
  }
  static Outcome failed_late(ClaimKey claim, std::string error, std::string reason,
                             std::string cause) {
    Outcome outcome = failed(claim, std::move(error), true, std::move(reason));
    outcome.kind = Kind::fail_late;
    outcome.cause = std::move(cause);
    return outcome;
  }
  static Outcome interrupted(ClaimKey claim, std::string error, std::string reason) {
    Outcome outcome = failed_late(claim, std::move(error), std::move(reason), "silence");
    outcome.kind = Kind::interrupt;
    return outcome;
  }
  // `was_alone`: the program had no other job.
  static Outcome died(ClaimKey claim, std::string error, std::string reason, bool was_alone) {
    Outcome outcome =
        failed_late(claim, std::move(error), std::move(reason), was_alone ? "exit" : "crash");
    outcome.kind = Kind::died;
    return outcome;
  }
  static Outcome snoozed(ClaimKey claim, Duration again_in, std::optional<std::string> checkpoint) {
    return {claim, Kind::snooze, std::move(checkpoint), {}, true, "snoozed", {}, false, again_in};
  }
  static Outcome released(ClaimKey claim, std::string reason) {
    return {claim, Kind::release, {}, {}, true, std::move(reason), {}, false};
  }
};

}  // namespace pulse
