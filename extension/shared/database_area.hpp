// Areas of shared memory with entries for each database. Only a server that preloads the library
// has such areas.
#pragma once

#include "shared/memory.hpp"

namespace pulse {

// `kEach` entries for each database. The creator fills an entry with zeros and calls its init().
template <typename Entry, int kEach = 1>
struct DatabaseArea {
  Entry* entries;  // null: this server has no such area
  static constexpr int kEntries = kEach * kPreloadedDatabases;
  static constexpr Size kSize = sizeof(Entry) * kEntries;

  void create(const char* name) {
    entries = static_cast<Entry*>(shared_area(name, kSize, [](void* area, Size size) {
      memset(area, 0, size);
      for (int i = 0; i < kEntries; i++) static_cast<Entry*>(area)[i].init();
    }));
  }

  // The first entry of the database; null: none.
  Entry* of_database(int database) { return entries ? &entries[database * kEach] : nullptr; }

  // The first entry of this database; null: none. May raise an error.
  Entry* here() {
    DatabaseState* database = entries ? this_database() : nullptr;
    return database ? of_database(entry_number(database)) : nullptr;
  }

  // As here(), if this session has found the database before; safe in callbacks.
  Entry* here_if_known() {
    DatabaseState* database = entries ? this_database_if_known() : nullptr;
    return database ? of_database(entry_number(database)) : nullptr;
  }
};

}  // namespace pulse
