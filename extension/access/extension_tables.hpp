// The tables of the extension, as the catalogue knows them, and how to have them all.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

constexpr int kMostTables = 64;

struct OwnTables {
  Oid extension;  // invalid where it is not installed
  Oid owner;
  int count;
  Oid table[kMostTables];
};

// Needs a transaction.
OwnTables find_own_tables();

// Locks them all for this transaction against everybody, to drop them. Each is waited for shorter
// than anybody looks for deadlocks, and when one is not to be had all are given up for a while:
// whoever uses the queue is held up for moments only, and no transaction is a victim. lock_timeout
// limits the whole of it.
void lock_own_tables_alone(OwnTables* own);

}  // namespace pulse
