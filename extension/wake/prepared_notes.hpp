// Prepared transactions: owns the area of shared memory with the notes of transactions that are
// prepared. COMMIT PREPARED runs in any session, and calls no function of this library. So PREPARE
// leaves the notes here. The next claim or sweep that finds the transaction ended publishes the
// notes.
//
// Invariants:
// - An entry belongs to the backend that made it busy, by compare-and-swap. While the entry has the
//   id of a transaction, all other fields are constant.
// - The backend that takes the notes frees the entry, so each entry is published once.
//
// After a restart the area is empty, though prepared transactions remain. Sweeps enter these
// transactions with notes that stand for any work.
//
// Only a server that preloads the library, and may prepare transactions, has this area.
#pragma once

#include "server/postgres.hpp"
#include "wake/pending_wakes.hpp"
#include "wake/promotion_marks.hpp"
#include "wake/waiters.hpp"

namespace pulse {

struct PreparedNotes {
  EarliestRunAt ready;
  FirstParked parked;
  PromotionMarks promotion_marks;
  // The parent buckets of the jobs that the transaction has ended.
  uint64 ended_parents[kParentWords];
  uint64 freed_levels;
  JobCounts jobs;
  EarliestRunAt due;
  TimestampTz parked_due;
  TimestampTz sweep_due;
  bool checks_anew;
};

// Size of the area, in bytes.
Size prepared_notes_size();
void create_prepared_notes();

// Leaves the notes of this transaction, which is prepared. Cannot fail. Without a free entry,
// sweeps and the expiry of low-water marks find the jobs that the transaction made ready.
void leave_notes_to_prepared();

// Takes the notes of a transaction of this database that has ended. False when no such transaction
// has notes.
bool take_notes_of_ended(PreparedNotes* notes);

// Sends the wake-ups in place of the commit. The caller lowers low-water marks and fronts of
// queues.
void publish_notes(DatabaseState* database, const PreparedNotes& notes);

}  // namespace pulse
