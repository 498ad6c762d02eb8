// Fields of a job that only a client with a token may see.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace pulse::console {

// The fields that the producer, the worker or an operator wrote as they liked, and the token.
inline constexpr std::array<const char*, 10> kPrivateFields{
    "payload", "checkpoint", "result",        "last_error",  "parents",
    "message", "token",      "cancel_reason", "traceparent", "last_error_line",
};

inline bool is_private(std::string_view field) {
  return std::find(kPrivateFields.begin(), kPrivateFields.end(), field) != kPrivateFields.end();
}

}  // namespace pulse::console
