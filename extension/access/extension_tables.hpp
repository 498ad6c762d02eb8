// The extension's tables according to the system catalogs, and how DROP EXTENSION locks all of
// them.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

constexpr int kMaxTables = 64;

struct ExtensionTables {
  Oid extension;  // InvalidOid: not installed
  Oid owner;
  int count;
  Oid table[kMaxTables];
};

// Needs a transaction.
ExtensionTables find_extension_tables();

// Locks all tables in ACCESS EXCLUSIVE mode until the transaction ends. Each wait is shorter than
// deadlock_timeout; after a failed wait, all locks are released for a while. So sessions that use
// the queue wait for moments only, and no transaction becomes a deadlock victim. lock_timeout
// limits the total time.
void lock_extension_tables(ExtensionTables* tables);

}  // namespace pulse
