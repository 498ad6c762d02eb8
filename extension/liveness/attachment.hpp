// The session that a worker is attached to.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// What becomes of the attachments whose workers this transaction ended: left at its commit, kept
// where it is undone, or all of it from a savepoint on. Neither can fail.
void leave_attachments();
void keep_attachments(SubTransactionId undone);

}  // namespace pulse
