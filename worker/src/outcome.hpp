// How one claim ended, as it is reported to the server.
#pragma once

#include <optional>
#include <string>

#include "duration.hpp"
#include "job.hpp"

namespace pulse {

struct Outcome {
  enum class Kind {
    complete,
    fail,
    release,  // never started: the attempt is given back
  };

  ClaimKey claim;
  Kind kind = Kind::complete;
  std::optional<std::string> result;  // of complete: JSON text
  std::string error;                  // of fail: kept with the job
  bool may_retry = true;              // of fail
  std::string reason;                 // in few words, for the log; never what a task wrote
  Duration ran_for{};

  static Outcome completed(ClaimKey claim, std::optional<std::string> result) {
    return {claim, Kind::complete, std::move(result), {}, true, {}, {}};
  }
  static Outcome failed(ClaimKey claim, std::string error, bool may_retry, std::string reason) {
    return {claim, Kind::fail, {}, std::move(error), may_retry, std::move(reason), {}};
  }
  static Outcome released(ClaimKey claim, std::string reason) {
    return {claim, Kind::release, {}, {}, true, std::move(reason), {}};
  }
};

}  // namespace pulse
