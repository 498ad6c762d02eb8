// The tables of the extension, as the catalogue knows them, and how to have them all.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

constexpr int kMaxTables = 64;

struct ExtensionTables {
  Oid extension;  // invalid where it is not installed
  Oid owner;
  int count;
  Oid table[kMaxTables];
};

// Needs a transaction.
ExtensionTables find_extension_tables();

// Locks them all for this transaction against everybody, to drop them. Each is waited for shorter
// than anybody looks for deadlocks, and when one is not to be had all are given up for a while:
// whoever uses the queue is held up for moments only, and no transaction is a victim. lock_timeout
// limits the whole of it.
void lock_extension_tables(ExtensionTables* own);

}  // namespace pulse
