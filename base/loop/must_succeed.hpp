// Calls without which there is no loop.
#pragma once

#include <system_error>

namespace pulse {

// Throws when `result` is a negative code of libuv, or a negated errno.
inline void must_succeed(int result, const char* call) {
  if (result < 0) throw std::system_error(-result, std::generic_category(), call);
}

}  // namespace pulse
