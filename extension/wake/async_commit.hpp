// Asynchronous commits: a transaction that wrote nothing but heartbeats and sweeps does not wait
// for the disk. The next beat repeats a beat that a crash takes back, and the next sweep repeats
// what a sweep loses. A transaction with any other write, before or after these, is flushed as
// usual.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// Around each such write. After an error between the two calls the transaction is flushed as usual.
void begin_async_write();
void end_async_write();

// Before the transaction's commit is recorded.
void prepare_async_commit();

// After the transaction's end.
void forget_async_writes();

}  // namespace pulse
