// Commits that others are told of before they are on disk, so that the add of a job and the claim
// that it wakes share one flush instead of waiting for one each, one after the other. The log is
// flushed in order: whoever changes what such a commit has written is on disk only when it is. The
// caller hears of the commit after its flush, as ever. (The idea of pre-committed transactions:
// DeWitt and others, "Implementation techniques for main memory database systems", 1984.)
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// Whether it is worth it, and right: somebody waits for jobs, and no standby that this session
// knows of has to hear of commits first. Asked before the commit is recorded.
bool may_tell_before_flush();

// After others were told of it: flushes the commit that this session has just recorded. When a
// waiter was woken for it, leaves that to his claim for 0.2 ms.
// Callable from a commit callback: like the commit itself, it cannot fail but by a PANIC.
void flush_told_commit(bool is_woken_for_job);

}  // namespace pulse
