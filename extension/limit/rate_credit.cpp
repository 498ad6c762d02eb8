#include "limit/rate_credit.hpp"

#include "server/advisory_lock.hpp"
#include "shared/memory.hpp"

namespace pulse {
namespace {

// Credit that the commit of this transaction publishes.
struct NotedCredit {
  uint64 level;  // 0: none
  int64 tokens;
};
constexpr int kMaxNoted = 4;
NotedCredit noted[kMaxNoted];

RateCredit* place_of(DatabaseState* database, uint64 level) {
  return database ? &database->rate_credits[level % kRateCredits] : nullptr;
}

// Calls use(credit), under the lock of the entry, for the credit of the level, if it has any. The
// transaction holds the level's lock in the mode `held`.
template <typename Use>
void with_credit(uint64 level, [[maybe_unused]] LOCKMODE held, Use use) {
  Assert(held == NoLock || holds_advisory_lock(LockKind::kLevel, level, held));
  RateCredit* credit = place_of(this_database(), level);
  if (!credit) return;
  lock_spin(&credit->lock);
  if (credit->level == level) use(credit);
  unlock_spin(&credit->lock);
}

}  // namespace

int64 note_credit(uint64 level, int64 tokens) {
  RateCredit* credit = place_of(this_database(), level);
  if (tokens == 0 || !credit) return 0;
  Assert(holds_advisory_lock(LockKind::kLevel, level, ExclusiveLock));
  lock_spin(&credit->lock);
  bool is_used = credit->level != 0 && credit->level != level && credit->tokens > 0;
  unlock_spin(&credit->lock);
  if (is_used) return 0;  // another level would lose the tokens in this entry
  for (NotedCredit& free : noted) {
    if (free.level != 0) continue;
    free = {level, tokens};
    return tokens;
  }
  return 0;
}

int64 take_all_credit(uint64 level) {
  int64 taken = 0;
  with_credit(level, ExclusiveLock, [&taken](RateCredit* credit) {
    taken = credit->tokens;
    credit->level = 0;
  });
  for (NotedCredit& own : noted) {
    if (own.level != level) continue;
    taken += own.tokens;
    own.level = 0;
  }
  return taken;
}

int64 credit_of(uint64 level) {
  int64 tokens = 0;
  with_credit(level, NoLock, [&tokens](RateCredit* credit) { tokens = credit->tokens; });
  return tokens;
}

bool take_credit(uint64 level, int64 tokens) {
  bool is_taken = false;
  with_credit(level, ShareLock, [&is_taken, tokens](RateCredit* credit) {
    is_taken = credit->tokens >= tokens;
    if (is_taken) credit->tokens -= tokens;
  });
  return is_taken;
}

void return_credit(uint64 level, int64 tokens) {
  with_credit(level, ShareLock, [tokens](RateCredit* credit) { credit->tokens += tokens; });
}

void void_credits(uint64 level) {
  if (level != 0) return (void)take_all_credit(level);
  DatabaseState* database = this_database();
  for (int i = 0; database && i < kRateCredits; i++) {
    RateCredit* credit = &database->rate_credits[i];
    lock_spin(&credit->lock);
    credit->level = 0;
    unlock_spin(&credit->lock);
  }
  forget_credit();
}

void publish_credit() {
  for (NotedCredit& own : noted) {
    RateCredit* credit = own.level ? place_of(this_database_if_known(), own.level) : nullptr;
    if (!credit) continue;
    Assert(holds_advisory_lock(LockKind::kLevel, own.level, ExclusiveLock));
    lock_spin(&credit->lock);
    credit->level = own.level;
    credit->tokens = own.tokens;
    unlock_spin(&credit->lock);
  }
  forget_credit();
}

void forget_credit() {
  for (NotedCredit& own : noted) own.level = 0;
}

}  // namespace pulse
