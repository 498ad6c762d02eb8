// A set of marks, of queues and of parents that have ended.
#pragma once

#include "server/shared_memory.hpp"

namespace pulse {

struct Marks {
  bool any;
  uint64 words[kMarkWords];

  void add(int slot) {
    any = true;
    words[slot / 64] |= UINT64CONST(1) << (slot % 64);
  }
  void add_all(const Marks& marks) {
    any |= marks.any;
    for (int i = 0; i < kMarkWords; i++) words[i] |= marks.words[i];
  }
};

}  // namespace pulse
