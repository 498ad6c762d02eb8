// The extension's tables according to the system catalogs.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

constexpr int kMaxTables = 64;

struct ExtensionTables {
  Oid extension;             // InvalidOid: not installed
  TransactionId changed_by;  // xmin of the extension's row in pg_extension: changes with each
                             // update
  Oid owner;
  int count;
  Oid table[kMaxTables];
};

// Needs a transaction.
ExtensionTables find_extension_tables();

// True when neither ALTER EXTENSION UPDATE nor DROP EXTENSION came between the two findings.
bool is_same_extension(const ExtensionTables& a, const ExtensionTables& b);

}  // namespace pulse
