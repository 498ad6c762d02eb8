// The beat of a worker of which the session's beat before has found that it holds nothing and is
// asked nothing, while that is sure to be so still: the row of the heartbeat is as that beat left
// it, the worker has not claimed since (claim_count.hpp) and no task was changed.
#pragma once

#include "liveness/inplace_update.hpp"
#include "server/postgres.hpp"

namespace pulse {

// Begun before a beat looks at anything, so that what changes while it looks is not missed.
struct BeatLook {
  int64 worker_id;
  bool is_counted;
  uint64 claims;
  uint64 changes;
};

BeatLook begin_beat_look(int64 worker_id);

// That look found nothing, and left the row so, of a worker that this session is attached to or
// (0) nobody.
void remember_beat(const BeatLook& look, const RowImage& row, uint64 attachment);

// False when more has to be looked at; then nothing was done.
bool beat_quickly(int64 worker_id);

}  // namespace pulse
