// Attachments: the end of an attached session is noticed without SQL in any exit path. A session
// lock stands for the session. One exit callback notes in shared memory that the client ended the
// session; a second requests a sweep. The sweep finds the lock free and decides.
//
// Invariants:
// - An attachment is a number that one session holds by the advisory lock kAttachment, until the
//   session ends or releases all locks.
// - A backend notes the end of its session before it releases the locks. So a sweep that finds the
//   lock of an ended session free finds the note too, unless later ends have replaced it.
// - Only the ending backend adds a note, under the spinlock of the bucket. No session removes
//   notes.
#include "liveness/attachment.hpp"

#include "access/catalog.hpp"
#include "liveness/clock.hpp"
#include "liveness/heartbeat.hpp"
#include "server/advisory_lock.hpp"
#include "server/clocks.hpp"
#include "server/settings.hpp"
#include "shared/memory.hpp"
#include "wake/waiters.hpp"

namespace pulse {
namespace {

// --- the ends of sessions ------------------------------------------------------------------------

// The end of an attached session by its client. A backend notes the end before it releases its
// locks. So a sweep that finds the lock free finds the note too. Without a note, the server or an
// administrator ended the session, or the session released its locks without an end. Guard:
// EndBucket::lock.
struct EndedSession {
  Oid database;  // 0: free
  uint64 attachment;
  TimestampTz at;
  int64 offset_us;  // the session's pulse.clock_offset
};

constexpr int kEndsPerBucket = 8;

// Guard of both other fields: `lock`.
struct EndBucket {
  slock_t lock;
  uint32 noted;  // number of ends ever noted; the bucket keeps the newest
  EndedSession end[kEndsPerBucket];
};

constexpr int kPreloadedBuckets = 512;
constexpr int kSlackBuckets = 64;

EndBucket* buckets = nullptr;
int bucket_count = 0;

void init_buckets(void* area, Size size) {
  memset(area, 0, size);
  auto* all = static_cast<EndBucket*>(area);
  for (Size i = 0; i < size / sizeof(EndBucket); i++) SpinLockInit(&all[i].lock);
}

// Consecutive numbers go to different buckets, so an entry is overwritten only after about as many
// ends as all buckets keep.
EndBucket* bucket_of(uint64 attachment) {
  return &buckets[(attachment + MyDatabaseId) % static_cast<uint64>(bucket_count)];
}

// Allocates the area if the server did not preload the library.
void find_ended_sessions() {
  if (buckets || !shared()) return;
  buckets = static_cast<EndBucket*>(
      area_of_slack("pg_pulse ended sessions", kSlackBuckets * sizeof(EndBucket), init_buckets));
  bucket_count = kSlackBuckets;
}

void note_ended(const EndedSession& end) {
  if (!buckets) return;
  EndBucket* bucket = bucket_of(end.attachment);
  lock_spin(&bucket->lock);
  bucket->end[bucket->noted++ % kEndsPerBucket] = end;
  unlock_spin(&bucket->lock);
}

// Finds the note of an end. False when no note says that the client ended the session.
bool find_end(uint64 attachment, EndedSession* end) {
  find_ended_sessions();
  if (!buckets) return false;
  EndBucket* bucket = bucket_of(attachment);
  bool found = false;
  lock_spin(&bucket->lock);
  for (const EndedSession& noted : bucket->end) {
    if (noted.database != MyDatabaseId || noted.attachment != attachment) continue;
    *end = noted;
    found = true;
  }
  unlock_spin(&bucket->lock);
  return found;
}

// --- the attachments of this session -------------------------------------------------------------

// An attachment of this session. It is free for the next worker of this session once a commit has
// deregistered its worker, or once the call that took it is undone.
struct Attachment {
  uint64 number;
  bool is_free = false;
  SubTransactionId taken_in = 0;    // not 0 until the transaction that took the attachment commits
  SubTransactionId leaving_in = 0;  // not 0 while this transaction deregisters the worker
};

Attachment* attachments = nullptr;
int attachment_count = 0;
bool has_noted_end = false;

// Runs while this session still holds its locks. A backend whose client disconnects exits with 0 or
// reports a lost connection. In any other case the server or an administrator ended the session.
extern "C" void pulse_session_ends(int code, Datum) {
  if (code != 0 && !ClientConnectionLost) return;
  TimestampTz now = GetCurrentTimestamp();
  for (int i = 0; i < attachment_count; i++) {
    if (attachments[i].is_free) continue;
    note_ended({MyDatabaseId, attachments[i].number, now, clock_offset_us()});
    has_noted_end = true;
  }
}

// Runs after the backend has released the session's locks, so the requested sweep finds the locks
// free.
extern "C" void pulse_session_has_ended(int, Datum) {
  DatabaseState* database = this_database_if_known();
  if (database && has_noted_end && settings.disconnect_grace_ms >= 0)
    request_sweep(database, wall_now());
}

void register_callbacks() {
  static bool is_registered = false;
  if (is_registered) return;
  before_shmem_exit(pulse_session_ends, Int32GetDatum(0));
  on_shmem_exit(pulse_session_has_ended, Int32GetDatum(0));
  is_registered = true;
}

// The upper half of the number identifies the installation. So no number equals a number of another
// database, or of an installation that was dropped while its sessions go on.
uint64 next_attachment() {
  Oid sequence = catalog()->attachment_seq;
  auto number = static_cast<uint32>(nextval_internal(sequence, false));
  return static_cast<uint64>(sequence & PG_INT32_MAX) << 32 | number;
}

// A free attachment whose lock the session still holds, or else a new attachment.
uint64 take_attachment() {
  for (int i = 0; i < attachment_count; i++) {
    if (!attachments[i].is_free || !holds_attachment(attachments[i].number)) continue;
    attachments[i] = {attachments[i].number, false, GetCurrentSubTransactionId()};
    return attachments[i].number;
  }
  Size size = (attachment_count + 1) * sizeof(Attachment);
  attachments = static_cast<Attachment*>(attachments ? repalloc(attachments, size)
                                                     : MemoryContextAlloc(TopMemoryContext, size));
  uint64 number = next_attachment();
  hold_attachment(number);
  attachments[attachment_count++] = {number, false, GetCurrentSubTransactionId()};
  return number;
}

}  // namespace

Size ended_sessions_size() { return kPreloadedBuckets * sizeof(EndBucket); }

void create_ended_sessions() {
  buckets = static_cast<EndBucket*>(
      shared_area("pg_pulse ended sessions", ended_sessions_size(), init_buckets));
  bucket_count = kPreloadedBuckets;
}

void leave_attachments() {
  for (int i = 0; i < attachment_count; i++)
    attachments[i] = {attachments[i].number, attachments[i].is_free || attachments[i].leaving_in};
}

void leave_attachments_to_prepared() {
  for (int i = 0; i < attachment_count; i++) attachments[i].taken_in = InvalidSubTransactionId;
}

void keep_attachments(SubTransactionId undone) {
  for (int i = 0; i < attachment_count; i++) {
    Attachment* attachment = &attachments[i];
    if (attachment->leaving_in >= undone) attachment->leaving_in = InvalidSubTransactionId;
    if (attachment->taken_in >= undone) *attachment = {attachment->number, true};
  }
}

}  // namespace pulse

// pulse_internal.hold_attachment(): an attachment for one worker, which this session holds until it
// ends.
PULSE_FUNCTION(pulse_hold_attachment) {
  (void)pulse::this_database();
  pulse::find_ended_sessions();
  pulse::register_callbacks();
  pulse::note_seen_tasks(GetActiveSnapshot());
  PG_RETURN_INT64(static_cast<int64>(pulse::take_attachment()));
}

// pulse_internal.forget_attachment(attachment): the worker was deregistered. After the commit, the
// end of the session requests no sweep for this attachment.
PULSE_FUNCTION(pulse_forget_attachment) {
  auto attachment = static_cast<uint64>(PG_GETARG_INT64(0));
  for (int i = 0; i < pulse::attachment_count; i++)
    if (pulse::attachments[i].number == attachment)
      pulse::attachments[i].leaving_in = GetCurrentSubTransactionId();
  PG_RETURN_VOID();
}

PULSE_FUNCTION(pulse_incarnation) { PG_RETURN_INT64(pulse::incarnation()); }

// pulse_internal.holds_attachment(attachment): whether this session holds the attachment.
PULSE_FUNCTION(pulse_holds_attachment) {
  PG_RETURN_BOOL(pulse::holds_attachment(static_cast<uint64>(PG_GETARG_INT64(0))));
}

// pulse_internal.attachment_state(attachment, incarnation): open, ended (by the client) or unknown.
// Unknown means that the server ended the session, that the attachment is of an earlier
// incarnation, or that the note was overwritten; then silence decides.
PULSE_FUNCTION(pulse_attachment_state) {
  auto attachment = static_cast<uint64>(PG_GETARG_INT64(0));
  const char* state = "open";
  pulse::EndedSession end;
  if (PG_GETARG_INT64(1) != pulse::incarnation())
    state = "unknown";
  else if (pulse::attachment_is_free(attachment))
    state = pulse::find_end(attachment, &end) ? "ended" : "unknown";
  PG_RETURN_TEXT_P(cstring_to_text(state));
}

// pulse_internal.ended_live_us(attachment): when the client ended the session, on the liveness
// clock; NULL when no note says so.
PULSE_FUNCTION(pulse_ended_live_us) {
  pulse::EndedSession end;
  if (!pulse::find_end(static_cast<uint64>(PG_GETARG_INT64(0)), &end)) PG_RETURN_NULL();
  PG_RETURN_INT64(pulse::live_base_us_at(end.at) + end.offset_us);
}
