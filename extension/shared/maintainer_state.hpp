// The background worker in one database, as launcher, maintainers and waiting sessions see it.
//
// Invariants:
// - The launcher starts one maintainer of a database at a time. The maintainer enters its process
//   into `process`, and its exit clears the field.
// - The maintainer writes `end`, `seen_at` and `last_sweep`; the launcher writes `end` where no
//   maintainer can start.
// - The launcher alone writes `is_serving`.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// How a maintainer (maintainer.cpp) ended, for the launcher, or why the launcher can start no
// maintainer. A maintainer begins with kDied, so a crash needs no report. A maintainer that has
// become idle writes kRan.
enum class MaintainerEnd : uint32 {
  kNone,
  kDied,
  kRan,
  kOff,           // sweeps are switched off there
  kNotInstalled,  // the database has no extension
  kBusy,          // another session needs the database or a table alone
  kFailed,        // the maintainer has logged an error
  kUnknown,       // the server has no such database
  kClosed,        // the database accepts no connections
  kNoPlace,       // no database entry is left for the database
  kNoProcess,     // no worker entry is free
};

// State of the background worker in one database. Times are microseconds of the monotonic clock.
// Guard of all fields: atomic.
struct MaintainerState {
  // The running maintainer: index into ProcGlobal->allProcs, plus one; 0: none.
  pg_atomic_uint32 process;
  // 1: maintainers sweep in this database, so waiting clients leave sweeps to maintainers at first.
  pg_atomic_uint32 is_serving;
  // When the maintainer last began a step; an idle maintainer begins two steps a second.
  pg_atomic_uint64 seen_at;
  // MaintainerEnd of the maintainer.
  pg_atomic_uint32 end;
  // When the next maintainer is to start.
  pg_atomic_uint64 next_start;
  // When the last sweep by the interval began; 0: the next maintainer sweeps at once.
  pg_atomic_uint64 last_sweep;
  // When a maintainer last logged a failure, and the SQLSTATE of that failure.
  pg_atomic_uint64 reported_at;
  pg_atomic_uint32 reported_sqlstate;
};

}  // namespace pulse
