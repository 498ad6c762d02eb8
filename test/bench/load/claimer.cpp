#include "claimer.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace bench {
namespace {

enum Statement { kClaim, kComplete, kFail, kWait };

const std::vector<std::string> kStatements = {
    "SELECT id, token, payload, attempts FROM pulse.claim($1::bigint, $2::int)",
    // Only exceptions travel back: an empty answer says that all was accepted.
    "SELECT id, outcome FROM pulse.complete_many($1::bigint[], $2::bigint[])"
    " WHERE outcome <> 'accepted'",
    "SELECT id, outcome FROM pulse.fail_many($1::bigint[], $2::bigint[],"
    " array_fill('this job fails'::text, ARRAY[cardinality($1)]),"
    " array_fill($3::boolean, ARRAY[cardinality($1)]),"
    " array_fill(interval '0', ARRAY[cardinality($1)])) WHERE outcome <> 'accepted'",
    "CALL pulse.wait_for_job($1::bigint, $2::bigint * interval '1 ms')",
};

// As pulse-worker waits.
constexpr std::int64_t kLongestWaitMs = 120000;

// The first waits end at different moments, as those of workers that were not started together.
std::int64_t first_wait_ms(std::int64_t worker_id) {
  constexpr std::int64_t kPrime = 7919;
  return worker_id % kLongestWaitMs * kPrime % kLongestWaitMs;
}

}  // namespace

Claimer::Claimer(Loop* loop, std::int64_t worker_id, const ClaimerOptions& options, Claims* total,
                 Listener* listener)
    : link_(loop, "bench-load worker", kStatements),
      worker_id_(worker_id),
      wait_ms_(first_wait_ms(worker_id)),
      options_(options),
      total_(total),
      listener_(listener) {}

void Claimer::claim() {
  is_at_rest_ = false;
  Held ended = std::exchange(held_, {});
  std::vector<Question> questions;
  if (!ended.done.empty())
    questions.push_back({kComplete, {array_text(ended.done), array_text(ended.done_tokens)}});
  if (!ended.failed.empty()) {
    bool again = options_.failing == ClaimerOptions::Failing::kRetried;
    questions.push_back(
        {kFail,
         {array_text(ended.failed), array_text(ended.failed_tokens), again ? "true" : "false"}});
  }
  std::int64_t asked = is_stopping_ ? 0 : std::min<std::int64_t>(options_.batch, total_->left);
  total_->left -= asked;
  if (asked > 0) questions.push_back({kClaim, {std::to_string(worker_id_), std::to_string(asked)}});
  if (questions.empty()) {
    is_at_rest_ = true;
    return;
  }
  link_.ask(questions, [this, ended = std::move(ended), asked](std::vector<Rows>& rows) {
    on_answer(rows, ended);
    if (asked > 0) take(rows.back(), asked);
    if (asked == 0 || is_stopping_ || !held_.done.empty() || !held_.failed.empty())
      claim();
    else
      wait();
  });
}

void Claimer::wait() {
  is_at_rest_ = true;
  std::int64_t wait_ms = std::exchange(wait_ms_, kLongestWaitMs);
  link_.ask({{kWait, {std::to_string(worker_id_), std::to_string(wait_ms)}}},
            [this](std::vector<Rows>&) {
              if (!is_stopping_) claim();
            });
}

void Claimer::on_answer(std::vector<Rows>& rows, const Held& ended) {
  std::size_t next = 0;
  std::int64_t attempts = 0;
  if (!ended.done.empty()) {
    read_outcomes(rows[next++], ended.done, ended.done_tokens, &held_.done, &held_.done_tokens);
    total_->jobs += static_cast<std::int64_t>(ended.done.size() - held_.done.size());
    attempts += static_cast<std::int64_t>(ended.done.size());
  }
  if (!ended.failed.empty()) {
    read_outcomes(rows[next++], ended.failed, ended.failed_tokens, &held_.failed,
                  &held_.failed_tokens);
    auto failures = static_cast<std::int64_t>(ended.failed.size() - held_.failed.size());
    total_->failures += failures;
    bool is_end = options_.failing == ClaimerOptions::Failing::kForGood;
    (is_end ? total_->jobs : total_->left) += failures;
    attempts += failures;
  }
  if (attempts > 0) listener_->on_end();
}

// What somebody else held for a moment is asked for again with the next claim.
void Claimer::read_outcomes(const Rows& rows, const Ids& ids, const Ids& tokens, Ids* busy,
                            Ids* busy_tokens) {
  for (int i = 0; i < rows.count(); i++) {
    if (rows.text(i, 1) != "busy") throw std::runtime_error("the end of a job was refused");
    std::int64_t id = rows.number(i, 0);
    busy->push_back(id);
    busy_tokens->push_back(tokens[std::ranges::find(ids, id) - ids.begin()]);
  }
}

void Claimer::take(const Rows& rows, std::int64_t asked) {
  total_->left += asked - rows.count();
  total_->claims++;
  if (rows.count() == 0) total_->empty_claims++;
  for (int i = 0; i < rows.count(); i++) {
    listener_->on_start(rows.text(i, 2));
    std::int64_t id = rows.number(i, 0);
    bool failed = fails(id, rows.number(i, 3));
    (failed ? held_.failed : held_.done).push_back(id);
    (failed ? held_.failed_tokens : held_.done_tokens).push_back(rows.number(i, 1));
  }
}

bool Claimer::fails(std::int64_t id, std::int64_t attempts) const {
  return options_.failing != ClaimerOptions::Failing::kNone && id % 2 == 0 && attempts == 1;
}

}  // namespace bench
