#include "jobs/outcome_statement.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/postgres/array_literal.hpp"
#include "base/postgres/sqlstate.hpp"
#include "session/statements.hpp"

namespace pulse {
namespace {

using Texts = std::vector<std::optional<std::string>>;

// NULL stands for an array of nothing but NULLs.
std::optional<std::string> optional_array(const Texts& texts) {
  const auto is_said = [](const auto& text) { return text.has_value(); };
  if (std::none_of(texts.begin(), texts.end(), is_said)) return std::nullopt;
  return array_literal(texts);
}

Call completion(const std::vector<const Outcome*>& outcomes, Params keys) {
  Texts results;
  for (const Outcome* outcome : outcomes) results.push_back(outcome->result);
  keys.push_back(optional_array(results));
  return {statements::kCompleteMany, std::move(keys)};
}

Call failure(const std::vector<const Outcome*>& outcomes, Params keys) {
  std::vector<std::string> errors;
  std::vector<bool> may_retry;
  Texts retry_in;
  std::vector<std::string> causes;
  Texts payloads;
  for (const Outcome* outcome : outcomes) {
    errors.push_back(outcome->error);
    may_retry.push_back(outcome->may_retry);
    retry_in.emplace_back();
    if (outcome->again_in) retry_in.back() = interval_param(*outcome->again_in);
    causes.push_back(outcome->cause);
    payloads.push_back(outcome->payload);
  }
  keys.emplace_back(array_literal(errors));
  const bool is_late = outcomes.front()->is_late();
  keys.emplace_back(is_late ? array_literal(causes) : array_literal(may_retry));
  if (!is_late) keys.push_back(optional_array(retry_in));
  keys.push_back(optional_array(payloads));
  return {is_late ? statements::kFailLate : statements::kFailMany, std::move(keys)};
}

// std::to_string writes the decimal sign of the locale that the program may have set.
std::string number_text(double number) {
  std::array<char, 400> text{};  // the longest double, with six decimals
  const auto written =
      std::to_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed, 6);
  return {text.data(), written.ptr};
}

Call snooze(const Outcome& outcome) {
  return {statements::kSnooze,
          {std::to_string(outcome.claim.job_id), std::to_string(outcome.claim.token),
           interval_param(outcome.again_in.value_or(Duration::zero())), outcome.result}};
}

std::string ascii_of(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c <= 0 || c > '~'; }, '?');
  return text;
}

}  // namespace

Call call_for(const std::vector<const Outcome*>& outcomes) {
  const Outcome::Kind kind = outcomes.front()->kind;
  if (kind == Outcome::Kind::snooze) return snooze(*outcomes.front());
  std::vector<std::int64_t> ids;
  std::vector<std::int64_t> tokens;
  for (const Outcome* outcome : outcomes) {
    ids.push_back(outcome->claim.job_id);
    tokens.push_back(outcome->claim.token);
  }
  Params keys{array_literal(ids), array_literal(tokens)};
  if (kind == Outcome::Kind::complete) return completion(outcomes, std::move(keys));
  if (kind == Outcome::Kind::release) return {statements::kRelease, std::move(keys)};
  return failure(outcomes, std::move(keys));
}

Params progress_params(ClaimKey claim, const TaskProgress& progress) {
  std::optional<std::string> fraction;
  if (progress.fraction) fraction = number_text(*progress.fraction);
  return {std::to_string(claim.job_id),
          std::to_string(claim.token),
          progress.message,
          fraction,
          progress.checkpoint,
          progress.stage};
}

const char* name_of(const Outcome& outcome) {
  if (outcome.is_cancelled) return "cancelled";
  switch (outcome.kind) {
    case Outcome::Kind::complete: return "completed";
    case Outcome::Kind::fail:
    case Outcome::Kind::fail_late:
    case Outcome::Kind::died: return "failed";
    case Outcome::Kind::interrupt: return "interrupted";
    case Outcome::Kind::release: return "released";
    case Outcome::Kind::snooze: return "snoozed";
  }
  return "";
}

bool is_about_data(const std::string& sqlstate) {
  return sqlstate.starts_with("22") || sqlstate.starts_with("54") ||
         sqlstate == sqlstate::kBadValue;
}

bool make_storable(Outcome& outcome, const std::string& why) {
  if (outcome.kind == Outcome::Kind::release) return false;
  if (outcome.kind == Outcome::Kind::complete) {
    outcome = Outcome::failed(outcome.claim, "the result cannot be stored: " + why,
                              /*may_retry=*/false, "result refused");
  } else if (outcome.kind == Outcome::Kind::snooze) {
    outcome = Outcome::failed(outcome.claim, "it cannot be snoozed so: " + why,
                              /*may_retry=*/false, "snooze refused");
  } else if (outcome.payload) {
    // The next attempt gets the job's own payload again.
    outcome.payload.reset();
    outcome.error = "what is left cannot be stored: " + why + "\n" + outcome.error;
  }
  outcome.error = ascii_of(outcome.error);
  return true;
}

}  // namespace pulse
