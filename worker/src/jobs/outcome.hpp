// Outcome: how one claim ended, as the worker reports the end to the server.
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
  bool is_cancelled = false;  // of fail: the server was asked to cancel the job, and records that

  static Outcome completed(ClaimKey claim, std::optional<std::string> result) {
    return {claim, Kind::complete, std::move(result), {}, true, {}, {}, false};
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
  static Outcome snoozed(ClaimKey claim, Duration again_in, std::optional<std::string> checkpoint) {
    return {claim, Kind::snooze, std::move(checkpoint), {}, true, "snoozed", {}, false, again_in};
  }
  static Outcome released(ClaimKey claim, std::string reason) {
    return {claim, Kind::release, {}, {}, true, std::move(reason), {}, false};
  }
};

}  // namespace pulse
