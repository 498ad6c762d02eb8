// FNV-1a with 64 bits (Fowler, Noll, Vo: draft-eastlake-fnv). Its values are stored in indexes and
// lock tags, so the function must never change.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

inline uint64 fnv1a(const char* data, int length) {
  uint64 hash = UINT64CONST(14695981039346656037);
  for (int i = 0; i < length; i++) {
    hash ^= static_cast<unsigned char>(data[i]);
    hash *= UINT64CONST(1099511628211);
  }
  return hash;
}

}  // namespace pulse
