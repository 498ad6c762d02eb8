// What is remembered of attached sessions that ended: which of them the server ended, and when the
// others did. Written while their locks are still held, so that whoever finds a lock free finds
// this as well.
#pragma once

#include "prelude.hpp"

namespace pulse {

constexpr int kExcusedEnds = 256;
constexpr int kTimedEnds = 128;

struct TimedEnd {
  uint64 attachment;
  TimestampTz at;
  int64 offset_us;  // the session's pulse.clock_offset
};

// Of one database. The lock is held for one pass over an array, and nothing raises under it.
struct EndedSessions {
  slock_t lock;
  uint64 excused_count;          // ever; the newest are kept
  uint64 excused[kExcusedEnds];  // ended by the server: that says nothing about the worker
  uint64 timed_count;            // ever; the newest are kept
  TimedEnd timed[kTimedEnds];    // ended by their clients
};

void forget_ended_sessions(EndedSessions* ended);

// May run in exit callbacks.
void note_excused(EndedSessions* ended, uint64 attachment);
void note_ended(EndedSessions* ended, const TimedEnd& end);

// Whether the server ended the session. When it ended more than are remembered, so it is said of
// all that are older: silence decides about them.
bool is_excused(EndedSessions* ended, uint64 attachment);

// When the session's client ended it; false where that is not known or not remembered.
bool find_end(EndedSessions* ended, uint64 attachment, TimedEnd* end);

}  // namespace pulse
