// The session that a worker is attached to.
#pragma once

#include "prelude.hpp"

namespace pulse {

// At the end of a transaction, or when a savepoint is rolled back: what becomes of the attachments
// whose workers it ended. Cannot fail.
void settle_left_attachments(bool is_committed);

}  // namespace pulse
