#include "ledger.hpp"

namespace bench {

void Ledger::added(std::int64_t id) {
  std::lock_guard lock(mutex_);
  added_.insert(id);
}

void Ledger::asked(const Ids& ids, Retention retention) {
  std::lock_guard lock(mutex_);
  if (retention == Retention::kNone) maybe_gone_.insert(ids.begin(), ids.end());
}

void Ledger::accepted(std::int64_t id, std::int64_t token, Retention retention) {
  std::lock_guard lock(mutex_);
  if (!accepted_.emplace(id, Completion{token, retention}).second) twice_++;
}

void Ledger::refused() {
  std::lock_guard lock(mutex_);
  refusals_++;
}

bool Ledger::is_somewhere(std::int64_t id, const Stored& stored) const {
  return stored.live.contains(id) || stored.finished.contains(id) || maybe_gone_.contains(id);
}

Ids Ledger::lost(const Stored& stored) const {
  std::lock_guard lock(mutex_);
  Ids lost;
  for (std::int64_t id : added_)
    if (!is_somewhere(id, stored)) lost.push_back(id);
  for (std::int64_t id : stored.orders)
    if (!is_somewhere(id, stored)) lost.push_back(id);
  return lost;
}

Ids Ledger::undone(const Stored& stored) const {
  std::lock_guard lock(mutex_);
  Ids undone;
  for (const auto& [id, completion] : accepted_) {
    bool as_accepted = !stored.live.contains(id);
    if (completion.retention == Retention::kKept) {
      auto kept = stored.completed_tokens.find(id);
      as_accepted =
          as_accepted && kept != stored.completed_tokens.end() && kept->second == completion.token;
    }
    if (!as_accepted) undone.push_back(id);
  }
  return undone;
}

}  // namespace bench
