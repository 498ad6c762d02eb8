// Commits that do not wait for the disk: of transactions that wrote only what is written anew
// anyway. A beat that a crash takes back is followed by another; what a sweep loses, another sweep
// finds. A transaction that wrote anything else, by the same caller before or after, is flushed as
// ever.
#pragma once

#include "prelude.hpp"

namespace pulse {

// Around such a write, as often as one likes. After an error between them the transaction is
// flushed.
void begin_lazy_write();
void end_lazy_write();

// Before the transaction's commit is recorded, and after its end.
void prepare_lazy_commit();
void forget_lazy_writes();

}  // namespace pulse
