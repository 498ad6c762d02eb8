// The sessions that workers are attached to.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// The area of shared memory in which exit callbacks note the ends of attached sessions.
Size ended_sessions_size();
void create_ended_sessions();

// Settles the attachments whose workers this transaction deregistered: its commit releases them,
// and a rollback keeps them, also that of a savepoint; what that took is free. Neither can fail.
void leave_attachments();
void keep_attachments(SubTransactionId undone);

// A prepared transaction may commit, so this session keeps what it took. Cannot fail.
void leave_attachments_to_prepared();

}  // namespace pulse
