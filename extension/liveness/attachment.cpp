// The end of an attached session, without SQL in any exit path: a session lock stands for the
// session. An exit callback notes in shared memory when the client ended it, another one asks for
// a sweep. The sweep finds the lock free and judges.
#include "liveness/attachment.hpp"

#include "access/catalog.hpp"
#include "liveness/ended_sessions.hpp"
#include "liveness/liveness_clock.hpp"
#include "server/advisory_lock.hpp"
#include "server/clocks.hpp"
#include "server/settings.hpp"
#include "server/shared_memory.hpp"
#include "wake/background_wake.hpp"
#include "wake/waiters.hpp"

namespace pulse {
namespace {

// An attachment of this session. It is left when its worker ends in order, once that is committed;
// its lock is let go of before the next one is taken, as a commit must not fail.
enum class Hold { kHeld, kLeaving, kLeft };

struct Attachment {
  uint64 number;
  Hold hold;
  SubTransactionId leaving_in;
};

Attachment* held = nullptr;
int held_count = 0;
int held_room = 0;
bool callbacks_registered = false;

// A client that went away makes the backend exit with 0, or is noticed as a lost connection.
// Everything else that ends a session is the server's or an administrator's doing.
bool is_client_gone(int code) { return code == 0 || ClientConnectionLost; }

bool is_any_held() {
  for (int i = 0; i < held_count; i++)
    if (held[i].hold != Hold::kLeft) return true;
  return false;
}

// Runs while this session still holds its locks.
extern "C" void pulse_session_ends(int code, Datum) {
  if (!is_any_held() || !is_client_gone(code)) return;
  TimestampTz now = GetCurrentTimestamp();
  for (int i = 0; i < held_count; i++)
    if (held[i].hold != Hold::kLeft)
      note_ended({MyDatabaseId, held[i].number, now, clock_offset_us()});
}

// Runs after this session's locks are released, so that the sweep which it asks for finds them
// free.
extern "C" void pulse_session_has_ended(int code, Datum) {
  DatabaseState* database = this_database_if_known();
  if (!database || !is_any_held() || !is_client_gone(code)) return;
  if (settings.disconnect_grace_ms < 0) return;
  lower_due(&database->sweep_due, wall_now());
  wake_background(database);
  signal_waiters();
}

void register_callbacks() {
  if (callbacks_registered) return;
  before_shmem_exit(pulse_session_ends, Int32GetDatum(0));
  on_shmem_exit(pulse_session_has_ended, Int32GetDatum(0));
  callbacks_registered = true;
}

void make_room() {
  if (held_count < held_room) return;
  int room = held_room == 0 ? 8 : 2 * held_room;
  Size size = room * sizeof(Attachment);
  held = static_cast<Attachment*>(held ? repalloc(held, size)
                                       : MemoryContextAlloc(TopMemoryContext, size));
  held_room = room;
}

void release_left() {
  int kept = 0;
  for (int i = 0; i < held_count; i++) {
    if (held[i].hold == Hold::kLeft)
      release_attachment(held[i].number);
    else
      held[kept++] = held[i];
  }
  held_count = kept;
}

// Of another database, and of an installation that was dropped while sessions of it went on, no
// number is given out again: the upper half is the installation's.
uint64 next_attachment() {
  Oid sequence = catalog()->attachment_seq;
  auto number = static_cast<uint32>(nextval_internal(sequence, false));
  return static_cast<uint64>(sequence & PG_INT32_MAX) << 32 | number;
}

}  // namespace

void leave_attachments() {
  for (int i = 0; i < held_count; i++)
    if (held[i].hold == Hold::kLeaving) held[i].hold = Hold::kLeft;
}

void keep_attachments(SubTransactionId undone) {
  for (int i = 0; i < held_count; i++)
    if (held[i].hold == Hold::kLeaving && held[i].leaving_in >= undone) held[i].hold = Hold::kHeld;
}

}  // namespace pulse

// pulse._hold_attachment(): a new attachment, held by this session until it ends.
PULSE_FUNCTION(pulse_hold_attachment) {
  (void)pulse::this_database();
  pulse::find_ended_sessions();
  pulse::register_callbacks();
  pulse::release_left();
  pulse::make_room();
  uint64 attachment = pulse::next_attachment();
  pulse::hold_attachment(attachment);
  pulse::held[pulse::held_count++] = {attachment, pulse::Hold::kHeld, InvalidSubTransactionId};
  PG_RETURN_INT64(static_cast<int64>(attachment));
}

// pulse._forget_attachment(attachment): its worker ended in order; the session's end tells nobody,
// from the commit on.
PULSE_FUNCTION(pulse_forget_attachment) {
  auto attachment = static_cast<uint64>(PG_GETARG_INT64(0));
  for (int i = 0; i < pulse::held_count; i++)
    if (pulse::held[i].number == attachment)
      pulse::held[i] = {attachment, pulse::Hold::kLeaving, GetCurrentSubTransactionId()};
  PG_RETURN_VOID();
}

PULSE_FUNCTION(pulse_incarnation) { PG_RETURN_INT64(pulse::incarnation()); }

// pulse._holds_attachment(attachment): whether it is this session's.
PULSE_FUNCTION(pulse_holds_attachment) {
  PG_RETURN_BOOL(pulse::holds_attachment(static_cast<uint64>(PG_GETARG_INT64(0))));
}

// pulse._attachment_state(attachment, incarnation): open, ended (by its client) or unknown (ended
// by the server, of an earlier incarnation, or nobody remembers: silence decides).
PULSE_FUNCTION(pulse_attachment_state) {
  auto attachment = static_cast<uint64>(PG_GETARG_INT64(0));
  const char* state = "open";
  pulse::EndedSession end;
  if (PG_GETARG_INT64(1) != pulse::incarnation())
    state = "unknown";
  else if (pulse::attachment_is_free(attachment))
    state = pulse::find_end(MyDatabaseId, attachment, &end) ? "ended" : "unknown";
  PG_RETURN_TEXT_P(cstring_to_text(state));
}

// pulse._ended_live_us(attachment): when its client ended the session, on the liveness clock; NULL
// where that is not known.
PULSE_FUNCTION(pulse_ended_live_us) {
  pulse::EndedSession end;
  if (!pulse::find_end(MyDatabaseId, static_cast<uint64>(PG_GETARG_INT64(0)), &end))
    PG_RETURN_NULL();
  PG_RETURN_INT64(pulse::live_base_us_at(end.at) + end.offset_us);
}
