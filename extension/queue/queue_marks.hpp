// What shared memory says of queues: which may have something to promote (their marks), up to when
// parked jobs that fell due have marked theirs, and when all queues were looked at. It is said of
// one installation; the next one begins anew.
#pragma once

#include "server/shared_memory.hpp"

namespace pulse {

// The state of this database, NULL where there is none; about the queues of this installation.
DatabaseState* queue_memory();

// Where nobody has looked at all queues since the server started or the extension was created.
bool is_look_at_all_due();

void mark_queue(DatabaseState* database, int slot);

// Everything that fell due by now is about to be looked at.
void note_full_look(DatabaseState* database);

// A look at parked jobs that fell due: after which moment, and at its end up to which.
struct FallenDueLook {
  uint64 known;
  TimestampTz seen;
};
FallenDueLook begin_fallen_due_look(DatabaseState* database);
void end_fallen_due_look(DatabaseState* database, const FallenDueLook& look);

// At the end of a transaction, or when a savepoint is rolled back: what was seen with what is
// undone now, or not to its end, is to be looked at again. Cannot fail.
void settle_queue_looks(bool is_committed);

}  // namespace pulse
