// Refusals: the meaning of the server's refusal of a statement to an operator.
#pragma once

#include <string>

#include "base/postgres/session.hpp"

namespace pulse {

// The right that a role needs for a statement, and the function that grants it.
struct NeededRight {
  const char* purpose = "run jobs";
  const char* grant = "grant_worker";
};
inline constexpr NeededRight kRightToWork;

// In one line: the fault, with DETAIL and HINT, and the statement that mends it where one is known.
std::string refusal_text(const SqlError& error, const Session& session,
                         const NeededRight& needed = kRightToWork);

// The server's words, for a log that has one line for each refusal.
std::string in_one_line(const std::string& message, const std::string& detail,
                        const std::string& hint);

// Faults of connections, locks, memory, disks and a server that starts or stops pass by themselves:
// the server may accept the same statement later.
bool is_passing(const std::string& sqlstate);

}  // namespace pulse
