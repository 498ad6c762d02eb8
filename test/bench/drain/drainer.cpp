#include "drainer.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace bench {
namespace {

const std::string kClaim = "SELECT id, token, identifier, payload FROM pulse.claim($1, $2)";
// Only exceptions travel back: an empty answer says that every completion was accepted.
const std::string kComplete =
    "SELECT id, outcome FROM pulse.complete_many($1, $2) WHERE outcome <> 'accepted'";

}  // namespace

Drainer::Drainer(const std::string& name, const DrainOptions& options)
    : session_(name), options_(options) {
  worker_id_ =
      session_.number("SELECT id FROM pulse.register_worker($1, ARRAY[$2])", {name, options.task});
  session_.prepare(kClaim);
  session_.prepare(kComplete);
}

Drained Drainer::run(Portion& portion) {
  total_ = {};
  session_.start_pipeline();
  Claim held;
  do {
    held = next_claim(held, portion.take(options_.batch));
  } while (!held.ids.empty());
  session_.stop_pipeline();
  return total_;
}

void Drainer::deregister() { session_.run("SELECT pulse.deregister_worker($1)", {worker_id_}); }

// Completes what is done, and claims so many.
Drainer::Claim Drainer::next_claim(const Claim& done, int most) {
  bool each = options_.commit == DrainOptions::Commit::kEach;
  if (!done.ids.empty()) {
    session_.send(kComplete, {done.ids, done.tokens});
    if (each) session_.flush();
  }
  bool claims = most > 0;
  if (claims) session_.send(kClaim, {worker_id_, std::int64_t{most}});
  if (claims || !each) session_.flush();
  if (!done.ids.empty()) {
    read_completion();
    if (each) session_.end_of_flush();
  }
  Claim claim = claims ? read_claim() : Claim{};
  if (claims || !each) session_.end_of_flush();
  // Everything that was accepted is durable now; what others held is asked for again.
  total_.jobs += static_cast<std::int64_t>(done.ids.size() - busy_.size());
  complete_again(std::exchange(busy_, {}), done);
  return claim;
}

Drainer::Claim Drainer::read_claim() {
  Rows rows = session_.next_rows();
  Claim claim;
  claim.ids.reserve(rows.count());
  claim.tokens.reserve(rows.count());
  for (int i = 0; i < rows.count(); i++) {
    claim.ids.push_back(rows.number(i, 0));
    claim.tokens.push_back(rows.number(i, 1));
    // The task: it looks at what it was given, and does nothing.
    total_.payload_bytes += static_cast<std::int64_t>(rows.text(i, 3).size());
  }
  total_.claims++;
  return claim;
}

void Drainer::read_completion() {
  Rows rows = session_.next_rows();
  for (int i = 0; i < rows.count(); i++) {
    if (rows.text(i, 1) != "busy") throw std::runtime_error("a completion was refused");
    busy_.push_back(rows.number(i, 0));
  }
}

void Drainer::complete_again(Ids busy, const Claim& done) {
  while (!busy.empty()) {
    Ids tokens;
    for (std::int64_t id : busy)
      tokens.push_back(done.tokens[std::ranges::find(done.ids, id) - done.ids.begin()]);
    session_.send(kComplete, {busy, tokens});
    session_.flush();
    read_completion();
    session_.end_of_flush();
    total_.jobs += static_cast<std::int64_t>(busy.size() - busy_.size());
    busy = std::exchange(busy_, {});
  }
}

}  // namespace bench
