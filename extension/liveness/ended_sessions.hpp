// The attached sessions that their clients ended, and when. A backend notes its end before it
// releases its locks, so a sweep that finds the lock free finds the note too. A session without a
// note was ended by the server or an administrator, or released its locks without an end.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

struct EndedSession {
  Oid database;  // 0: free
  uint64 attachment;
  TimestampTz at;
  int64 offset_us;  // the session's pulse.clock_offset
};

Size ended_sessions_size();
void create_ended_sessions();

// Allocates the area if the server did not preload the library. A backend calls it before it notes
// an end.
void find_ended_sessions();

// Notes an end. Safe in an exit callback.
void note_ended(const EndedSession& end);

// Finds the note of an end. False when it is unknown whether the client ended the session.
bool find_end(Oid database, uint64 attachment, EndedSession* end);

}  // namespace pulse
