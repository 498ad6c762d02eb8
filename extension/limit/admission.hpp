// Admission: how many jobs of a queue its levels let a promotion open, and the report of the
// promotion to the levels. Promotion knows levels, rates and rings by these calls alone.
//
// Invariants:
// - An admitted promotion holds the locks of the queue and of its levels, and reads under a
//   snapshot younger than the locks (limit/levels.hpp).
// - The promotion reports each admission with the status kAdmitted once. The report gives the locks
//   back, or notes the queue as promoted by this transaction.
#pragma once

#include "job/table.hpp"
#include "limit/fair_turn.hpp"
#include "limit/levels.hpp"
#include "limit/queue_source.hpp"

namespace pulse {

// What the admissions of one call share.
struct AdmissionContext {
  JobTable table;  // null until the first admission; each admission takes a new snapshot
  LevelCounts counts;
  FairTurn* turn;  // the turn in which the call promotes a queue; null: not in a turn
};

enum class AdmissionStatus {
  kAwaitsTurn,  // the queue has joined the ring of a fair level
  kBusy,        // another transaction holds the lock of the queue or of a level
  kAdmitted
};

struct Admission {
  AdmissionStatus status;
  Candidate queue;
  bool is_paused;   // the queue or one of its levels
  int starts_left;  // how many more jobs the queue may start in this turn
  Levels levels;    // `places_left` of them: how many more jobs the levels let a promotion open
};

// Locks the queue and its levels, reads the settings, and finds the places left.
Admission admit(const Candidate& queue, AdmissionContext* context);

// As admit(), in this snapshot, without locks and turns. A caller that lets the queue wait reads
// `freed` before the snapshot.
Admission foresee_admission(const Candidate& queue, Relation job, Snapshot snapshot,
                            LevelCounts* counts, const FreedPlaces& freed);

// Counts the places, charges the turn, and gives the locks back if nothing has changed. Sets
// `blocking_group` of the outcome.
void report_opened(Admission* admission, Outcome* outcome, AdmissionContext* context);

// Lets the queue of foresee_admission() wait for the level that keeps it from a place.
void wait_where_blocked(const Admission& admission);

}  // namespace pulse
