// The end of an attached session is noticed without SQL in any exit path: a session lock stands for
// the session. One exit callback notes in shared memory that the client ended the session; another
// one requests a sweep. The sweep finds the lock free and decides.
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

// The state of an attachment of this session. Once a commit has deregistered its worker, the
// attachment is releasable. The session releases the lock at its next attachment, because a commit
// must not fail.
enum class AttachmentState { kHeld, kLeaving, kReleasable };

struct Attachment {
  uint64 number;
  AttachmentState state;
  SubTransactionId leaving_in;
};

Attachment* attachments = nullptr;
int attachment_count = 0;
int attachment_capacity = 0;
bool callbacks_registered = false;

// A backend whose client disconnects exits with 0 or reports a lost connection. In any other case
// the server or an administrator ended the session.
bool is_client_gone(int code) { return code == 0 || ClientConnectionLost; }

bool is_attached() {
  for (int i = 0; i < attachment_count; i++)
    if (attachments[i].state != AttachmentState::kReleasable) return true;
  return false;
}

// Runs while this session still holds its locks.
extern "C" void pulse_session_ends(int code, Datum) {
  if (!is_attached() || !is_client_gone(code)) return;
  TimestampTz now = GetCurrentTimestamp();
  for (int i = 0; i < attachment_count; i++)
    if (attachments[i].state != AttachmentState::kReleasable)
      note_ended({MyDatabaseId, attachments[i].number, now, clock_offset_us()});
}

// Runs after the backend has released the session's locks: the requested sweep finds them free.
extern "C" void pulse_session_has_ended(int code, Datum) {
  DatabaseState* database = this_database_if_known();
  if (!database || !is_attached() || !is_client_gone(code)) return;
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

void reserve_attachment() {
  if (attachment_count < attachment_capacity) return;
  int capacity = attachment_capacity == 0 ? 8 : 2 * attachment_capacity;
  Size size = capacity * sizeof(Attachment);
  attachments = static_cast<Attachment*>(attachments ? repalloc(attachments, size)
                                                     : MemoryContextAlloc(TopMemoryContext, size));
  attachment_capacity = capacity;
}

void release_forgotten() {
  int kept = 0;
  for (int i = 0; i < attachment_count; i++) {
    if (attachments[i].state == AttachmentState::kReleasable)
      release_attachment(attachments[i].number);
    else
      attachments[kept++] = attachments[i];
  }
  attachment_count = kept;
}

// The upper half of the number identifies the installation. So no number equals one of another
// database, or of an installation that was dropped while its sessions go on.
uint64 next_attachment() {
  Oid sequence = catalog()->attachment_seq;
  auto number = static_cast<uint32>(nextval_internal(sequence, false));
  return static_cast<uint64>(sequence & PG_INT32_MAX) << 32 | number;
}

}  // namespace

void leave_attachments() {
  for (int i = 0; i < attachment_count; i++)
    if (attachments[i].state == AttachmentState::kLeaving)
      attachments[i].state = AttachmentState::kReleasable;
}

void keep_attachments(SubTransactionId undone) {
  for (int i = 0; i < attachment_count; i++)
    if (attachments[i].state == AttachmentState::kLeaving && attachments[i].leaving_in >= undone)
      attachments[i].state = AttachmentState::kHeld;
}

}  // namespace pulse

// pulse._hold_attachment(): makes an attachment, which this session holds until it ends.
PULSE_FUNCTION(pulse_hold_attachment) {
  (void)pulse::this_database();
  pulse::find_ended_sessions();
  pulse::register_callbacks();
  pulse::release_forgotten();
  pulse::reserve_attachment();
  uint64 attachment = pulse::next_attachment();
  pulse::hold_attachment(attachment);
  pulse::attachments[pulse::attachment_count++] = {attachment, pulse::AttachmentState::kHeld,
                                                   InvalidSubTransactionId};
  PG_RETURN_INT64(static_cast<int64>(attachment));
}

// pulse._forget_attachment(attachment): the worker was deregistered. After the commit, the end of
// the session requests no sweep for it.
PULSE_FUNCTION(pulse_forget_attachment) {
  auto attachment = static_cast<uint64>(PG_GETARG_INT64(0));
  for (int i = 0; i < pulse::attachment_count; i++)
    if (pulse::attachments[i].number == attachment)
      pulse::attachments[i] = {attachment, pulse::AttachmentState::kLeaving,
                               GetCurrentSubTransactionId()};
  PG_RETURN_VOID();
}

PULSE_FUNCTION(pulse_incarnation) { PG_RETURN_INT64(pulse::incarnation()); }

// pulse._holds_attachment(attachment): whether this session holds the attachment.
PULSE_FUNCTION(pulse_holds_attachment) {
  PG_RETURN_BOOL(pulse::holds_attachment(static_cast<uint64>(PG_GETARG_INT64(0))));
}

// pulse._attachment_state(attachment, incarnation): open, ended (by its client) or unknown. Unknown
// means ended by the server, of an earlier incarnation, or overwritten; then silence decides.
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

// pulse._ended_live_us(attachment): when the client ended the session, on the liveness clock; NULL
// when that is unknown.
PULSE_FUNCTION(pulse_ended_live_us) {
  pulse::EndedSession end;
  if (!pulse::find_end(MyDatabaseId, static_cast<uint64>(PG_GETARG_INT64(0)), &end))
    PG_RETURN_NULL();
  PG_RETURN_INT64(pulse::live_base_us_at(end.at) + end.offset_us);
}
