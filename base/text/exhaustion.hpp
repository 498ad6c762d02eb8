// Exhaustion: errors of a machine that has no memory or no descriptors left. Such an error says
// nothing about the file or the program, and a later try may succeed.
#pragma once

#include <cerrno>

namespace pulse {

constexpr bool is_exhaustion(int error) {
  return error == EMFILE || error == ENFILE || error == ENOMEM || error == EAGAIN;
}

}  // namespace pulse
