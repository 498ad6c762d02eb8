// The session that a worker is attached to.
#pragma once

#include "prelude.hpp"

namespace pulse {

// Whether this session is the one that the attachment stands for.
bool holds_attachment(uint64 attachment);

}  // namespace pulse
