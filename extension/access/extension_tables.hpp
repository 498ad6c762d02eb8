// The extension's tables according to the system catalogs.
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

}  // namespace pulse
