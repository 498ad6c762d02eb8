// Liveness: the sessions that workers are attached to. Owns the notes of ended sessions in shared
// memory, each under the lock of its bucket.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// The area of shared memory in which exit callbacks note the ends of attached sessions.
Size ended_sessions_size();
void create_ended_sessions();

// Resolve the attachments at the end of a transaction or savepoint. A commit frees the attachments
// of the workers that the transaction deregistered. A rollback keeps these, and frees the
// attachments that the undone part took. Neither function can fail.
void leave_attachments();
void keep_attachments(SubTransactionId undone);

// A prepared transaction may commit, so this session keeps the attachments that the transaction
// took. Cannot fail.
void leave_attachments_to_prepared();

}  // namespace pulse
