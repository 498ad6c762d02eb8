// Commits that are not flushed at once: of transactions that wrote nothing else than what bears it.
// A beat that a crash takes back is followed by another; what a sweep loses, another sweep finds.
// New jobs without keys are flushed after others were told of them (see told_commit.hpp). A
// transaction that wrote anything else, by the same caller before or after, is flushed as ever.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// kSomeTime: whenever the server writes its log. kBeforeReply: before the caller hears of it.
enum class FlushDue { kSomeTime, kBeforeReply };

// Around such a write, as often as one likes. After an error between them the transaction is
// flushed as ever.
void begin_async_write(FlushDue due = FlushDue::kSomeTime);
void end_async_write();

// Before the transaction's commit is recorded; `is_work` when it has jobs that can be claimed now.
void prepare_async_commit(bool is_work);

// After its end; true when what is committed has to be flushed now.
bool forget_async_writes();

}  // namespace pulse
