// <pulse/worker.hpp> for handlers, in terms of the worker's own parts.
#include <algorithm>
#include <stdexcept>

#include "base/text/json_text.hpp"
#include "base/text/stderr_tail.hpp"
#include "pulse/worker.hpp"
#include "task/handler/run.hpp"

namespace pg_pulse {

Job::Job(std::shared_ptr<pulse::HandlerRun> run) noexcept : run_(std::move(run)) {}

std::int64_t Job::id() const noexcept { return run_->input().job_id; }
std::int64_t Job::token() const noexcept { return run_->input().token; }
const std::string& Job::task() const noexcept { return run_->input().identifier; }
const std::string& Job::payload() const noexcept {
  static const std::string none = "null";
  return run_->input().payload_json ? *run_->input().payload_json : none;
}
const std::optional<std::string>& Job::checkpoint() const noexcept {
  return run_->input().checkpoint_json;
}
const std::optional<std::string>& Job::parents() const noexcept {
  return run_->input().parents_json;
}
const std::optional<std::string>& Job::traceparent() const noexcept {
  return run_->input().traceparent;
}
int Job::attempt() const noexcept { return run_->input().attempt; }
int Job::max_attempts() const noexcept { return run_->input().max_attempts; }
int Job::crashes() const noexcept { return run_->input().crashes; }
int Job::priority() const noexcept { return run_->input().priority; }
const std::optional<std::string>& Job::queue() const noexcept { return run_->input().queue_name; }
const std::optional<std::string>& Job::key() const noexcept { return run_->input().job_key; }
const std::vector<std::string>& Job::flags() const noexcept { return run_->input().flags; }
const std::optional<std::string>& Job::last_error() const noexcept {
  return run_->input().last_error;
}
const std::optional<std::string>& Job::recovered() const noexcept {
  return run_->input().recovered;
}
const std::string& Job::run_at() const noexcept { return run_->input().run_at; }
const std::string& Job::created_at() const noexcept { return run_->input().created_at; }

std::stop_token Job::stop_token() const noexcept { return run_->stop_token(); }

StopReason Job::stop_reason() const noexcept {
  switch (run_->stop_reason()) {
    case pulse::EndReason::none: break;
    case pulse::EndReason::timeout: return StopReason::timed_out;
    case pulse::EndReason::stall: return StopReason::stalled;
    case pulse::EndReason::cancelled: return StopReason::cancelled;
    case pulse::EndReason::unreachable: return StopReason::unreachable;
    case pulse::EndReason::revoked: return StopReason::lost;
    case pulse::EndReason::interrupted: return StopReason::shutdown;
  }
  return StopReason::none;
}

void Job::report(Progress progress) const {
  constexpr std::size_t kMaxMessageBytes = std::size_t{8} * 1024;
  constexpr std::size_t kMaxStageBytes = 128;
  if (progress.checkpoint) {
    const auto problem = pulse::document_problem(*progress.checkpoint);
    if (problem) throw std::invalid_argument("the checkpoint cannot be stored: " + *problem);
  }
  const auto cut = [](std::optional<std::string>& text, std::size_t limit) {
    if (text) text = pulse::storable_head(*text, limit);
  };
  cut(progress.message, kMaxMessageBytes);
  cut(progress.stage, kMaxStageBytes);
  run_->report({progress.fraction, std::move(progress.message), std::move(progress.stage),
                std::move(progress.checkpoint)});
}

Outcome Outcome::success() { return Outcome(Kind::success); }

Outcome Outcome::success(std::string result) {
  Outcome outcome(Kind::success);
  outcome.text_ = std::move(result);
  return outcome;
}

Outcome Outcome::failure(std::string error) {
  Outcome outcome(Kind::failure);
  outcome.text_ = std::move(error);
  return outcome;
}

Outcome Outcome::failure(std::string error, std::chrono::milliseconds retry_in) {
  Outcome outcome = failure(std::move(error));
  outcome.delay_ = std::max(retry_in, std::chrono::milliseconds::zero());
  return outcome;
}

Outcome Outcome::final_failure(std::string error) {
  Outcome outcome(Kind::final_failure);
  outcome.text_ = std::move(error);
  return outcome;
}

Outcome Outcome::with_payload(std::string payload) && {
  payload_ = std::move(payload);
  return std::move(*this);
}

Outcome Outcome::snooze(std::chrono::milliseconds delay, std::optional<std::string> checkpoint) {
  Outcome outcome(Kind::snooze);
  outcome.text_ = std::move(checkpoint);
  outcome.delay_ = std::max(delay, std::chrono::milliseconds::zero());
  return outcome;
}

}  // namespace pg_pulse
