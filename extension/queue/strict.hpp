// Strict queues: a job that has been claimed keeps its place until it has ended.
#pragma once

#include "access/index_lookup.hpp"
#include "queue/places.hpp"

namespace pulse {

// Values of pulse.job.queue_turn. The lower one comes first.
constexpr int kClaimedTurn = 1;  // has been claimed and waits again
constexpr int kNoTurn = PG_INT16_MAX;

// pulse.job.queue_turn of a row; kNoTurn where it is empty.
int turn_of(TupleTableSlot* row);

// Whether the end of a job has paused the queue.
bool is_paused_by_end(Datum queue_name, Snapshot snapshot);

// Finds the parked job that a strict queue starts before all others, and puts it into `row`. The
// caller closes the lookup in either case.
bool find_turn(IndexLookup* turns, const Queue& queue, Relation job, Snapshot snapshot);

// Whether that job may be opened: where the place is taken, in place of an open job.
bool may_open_turn(const Queue& queue, TupleTableSlot* row);

}  // namespace pulse
