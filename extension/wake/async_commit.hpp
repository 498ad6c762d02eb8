// Asynchronous commits: a transaction that wrote nothing but heartbeats and sweeps does not wait
// for the disk. After a crash, the next heartbeat or sweep repeats the lost one. A transaction with
// any other write, before or after these, is flushed as usual.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// Called around each such write. After an error between the two, the transaction is flushed as
// usual.
void begin_async_write();
void end_async_write();

// Called before the server records the commit.
void prepare_async_commit();

// Called after the end of the transaction.
void forget_async_writes();

}  // namespace pulse
