// What the server's refusal of a statement means to an operator.
#pragma once

#include <string>

#include "database/session.hpp"

namespace pulse {

// In one line: what is wrong, with DETAIL and HINT, and the statement that mends it where that is
// known.
std::string refusal_text(const SqlError& error, const Session& session);

}  // namespace pulse
