#include "jobs/end_outcome.hpp"

#include <utility>

namespace pulse {
namespace {

std::string with_tail(std::string error, const std::string& tail) {
  return tail.empty() ? error : std::move(error) + "\n" + tail;
}

}  // namespace

Outcome outcome_of(EndReason reason_to_end, const HeldJob& job, const ExecutionEnd& end,
                   bool tells_output) {
  const ClaimKey claim = job.key();
  const auto limit_text = [](const std::optional<Duration>& limit) {
    return to_string(limit.value_or(Duration::zero()));
  };
  if (end.stopped_by == ExecutionEnd::StoppedBy::silence) {
    const std::string error = "ended because its worker stood still for too long";
    return Outcome::interrupted(claim, with_tail(error, end.error), error);
  }
  switch (reason_to_end) {
    case EndReason::timeout: {
      const std::string error = "timed out after " + limit_text(job.job.timeout);
      return Outcome::failed_late(claim, with_tail(error, end.error), error, "timeout");
    }
    case EndReason::stall: {
      const std::string error = "no progress for " + limit_text(job.job.stall_timeout);
      return Outcome::failed_late(claim, with_tail(error, end.error), error, "stall");
    }
    case EndReason::cancelled: return Outcome::cancelled(claim, with_tail("cancelled", end.error));
    case EndReason::unreachable: {
      const std::string error = "terminated because the database could not be reached";
      return Outcome::interrupted(claim, with_tail(error, end.error), error);
    }
    default: break;
  }
  if (end.kind == ExecutionEnd::Kind::succeeded) return Outcome::completed(claim, end.result);
  if (end.kind == ExecutionEnd::Kind::snoozed) {
    return Outcome::snoozed(claim, end.again_in.value_or(Duration::zero()), end.checkpoint);
  }
  std::string reason = tells_output ? cause_of(end) : kind_of_end(end);
  if (end.kind == ExecutionEnd::Kind::exited || end.kind == ExecutionEnd::Kind::crashed) {
    return Outcome::died(claim, end.error, std::move(reason),
                         end.kind == ExecutionEnd::Kind::exited);
  }
  if (end.kind == ExecutionEnd::Kind::interrupted) {
    return Outcome::interrupted(claim, end.error, std::move(reason));
  }
  if (end.kind == ExecutionEnd::Kind::not_started && end.is_transient) {
    return Outcome::released(claim, std::move(reason));
  }
  const bool may_retry = end.kind != ExecutionEnd::Kind::failed_for_good;
  Outcome outcome = Outcome::failed(claim, end.error, may_retry, std::move(reason));
  outcome.is_done = end.kind == ExecutionEnd::Kind::done;
  outcome.is_unsure = outcome.is_done || end.kind == ExecutionEnd::Kind::session_lost;
  outcome.again_in = end.again_in;
  return outcome;
}

}  // namespace pulse
