// What transactions that are prepared would have told with their commit. COMMIT PREPARED runs in
// any session, and calls nothing of this library. So PREPARE leaves the notes here, and the next
// claim or sweep that finds the transaction ended publishes them.
//
// After a restart the area is empty, and prepared transactions are still there. Sweeps enter them
// with notes that stand for anything.
//
// Only a server that preloads the library, and may prepare transactions, has this area.
#pragma once

#include "server/postgres.hpp"
#include "wake/marks.hpp"
#include "wake/pending_wakes.hpp"
#include "wake/waiters.hpp"

namespace pulse {

struct PreparedNotes {
  EarliestRunAt ready;
  FirstParked parked;
  Marks marks;
  uint64 ended_parents[kParentWords];  // the slots of the jobs that it has ended
  uint64 freed_levels;
  JobCounts jobs;
  EarliestRunAt due;
  TimestampTz parked_due;
  TimestampTz sweep_due;
  bool looks_anew;
};

Size prepared_notes_size();
void create_prepared_notes();

// Leaves the notes of this transaction, which is prepared. Cannot fail; without a free entry,
// sweeps and the expiry of marks find what it made ready.
void leave_notes_to_prepared();

// Takes the notes of a transaction of this database that has ended; false when there is none.
bool take_notes_of_ended(PreparedNotes* notes);

// Tells them in place of its commit, all but where marks and fronts are to begin.
void publish_notes(DatabaseState* database, const PreparedNotes& notes);

}  // namespace pulse
