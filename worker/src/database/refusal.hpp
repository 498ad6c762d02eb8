// What the server's refusal of a statement means to an operator.
#pragma once

#include <string>

#include "database/session.hpp"

namespace pulse {

// What a role needs for a statement, and the function that grants it.
struct NeededRight {
  const char* purpose = "run jobs";
  const char* grant = "grant_worker";
};
inline constexpr NeededRight kRightToWork;

// In one line: what is wrong, with DETAIL and HINT, and the statement that mends it where that is
// known.
std::string refusal_text(const SqlError& error, const Session& session,
                         const NeededRight& needed = kRightToWork);

// What the server says, for a log that has one line for it.
std::string in_one_line(const std::string& message, const std::string& detail,
                        const std::string& hint);

// Connections, locks, memory, disks and a server that starts or stops pass by themselves: what was
// refused may be accepted later.
bool is_passing(const std::string& sqlstate);

}  // namespace pulse
