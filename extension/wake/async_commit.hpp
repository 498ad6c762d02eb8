// Asynchronous commits: a transaction that wrote nothing but heartbeats and sweeps does not wait
// for the disk. After a crash, the next heartbeat or sweep repeats the lost write. A transaction
// with any other write, before or after, is flushed as usual.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// The two calls enclose each write of a heartbeat or sweep. After an error between the two calls,
// the transaction is flushed as usual.
void begin_async_write();
void end_async_write();

// Called before the server records the commit.
void prepare_async_commit();

// Called after the end of the transaction.
void forget_async_writes();

}  // namespace pulse
