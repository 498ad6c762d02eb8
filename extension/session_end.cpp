// The end of an attached session, without SQL in any exit path: a session lock stands for the
// session, and an exit callback that touches shared memory only asks for a sweep. The sweep finds
// the lock free and judges. Ends that the server caused are remembered as excused.
#include "session_end.hpp"

#include "background.hpp"
#include "catalog.hpp"
#include "private_lock.hpp"
#include "settings.hpp"
#include "shared_memory.hpp"
#include "waiters.hpp"

namespace pulse {
namespace {

// Attachments of this session, newest last; a session seldom has more than one.
constexpr int kRemembered = 16;
uint64 held[kRemembered];
int held_count = 0;
bool callback_registered = false;

void excuse(SharedState* all, uint64 attachment) {
  uint64 position = pg_atomic_fetch_add_u64(&all->excused_count, 1);
  pg_atomic_write_u64(&all->excused[position % kExcusedEnds], attachment);
}

// Runs after this session's locks are released, so that the sweep which it asks for finds them
// free.
extern "C" void pulse_session_exit(int code, Datum) {
  SharedState* all = shared();
  DatabaseState* database = this_database_if_known();
  if (!all || !database || held_count == 0) return;
  // A client that went away makes the backend exit with 0, or is noticed as a lost connection.
  // Everything else that ends a session is the server's or an administrator's doing.
  bool by_client = code == 0 || ClientConnectionLost;
  if (!by_client) {
    for (int i = 0; i < held_count; i++) excuse(all, held[i]);
    return;
  }
  if (settings.disconnect_grace_ms < 0) return;
  lower_due(&database->sweep_due, wall_now());
  wake_background(database);
  nudge_waiters();
}

bool is_excused(uint64 attachment) {
  SharedState* all = shared();
  if (!all) return false;
  // When more sessions were ended at once than are remembered, silence decides about all of them.
  if (pg_atomic_read_u64(&all->excused_count) > kExcusedEnds) {
    uint64 oldest = PG_UINT64_MAX;
    for (int i = 0; i < kExcusedEnds; i++)
      oldest = Min(oldest, pg_atomic_read_u64(&all->excused[i]));
    if (attachment < oldest) return true;
  }
  for (int i = 0; i < kExcusedEnds; i++)
    if (pg_atomic_read_u64(&all->excused[i]) == attachment) return true;
  return false;
}

void remember(uint64 attachment) {
  // More than fit: the oldest is the least likely to be still in force.
  if (held_count == kRemembered) memmove(held, held + 1, sizeof(uint64) * --held_count);
  held[held_count++] = attachment;
}

}  // namespace

bool holds_attachment(uint64 attachment) {
  for (int i = 0; i < held_count; i++)
    if (held[i] == attachment && !attachment_is_free(attachment)) return true;
  return false;
}

}  // namespace pulse

// pulse._hold_attachment(): a new attachment, held by this session until it ends.
PULSE_FUNCTION(pulse_hold_attachment) {
  (void)pulse::this_database();
  if (!pulse::callback_registered) {
    on_shmem_exit(pulse::pulse_session_exit, Int32GetDatum(0));
    pulse::callback_registered = true;
  }
  auto attachment = static_cast<uint64>(nextval_internal(pulse::catalog()->attachment_seq, false));
  pulse::hold_attachment(attachment);
  pulse::remember(attachment);
  PG_RETURN_INT64(static_cast<int64>(attachment));
}

// pulse._forget_attachment(attachment): its worker ended in order; the session's end tells nobody.
PULSE_FUNCTION(pulse_forget_attachment) {
  auto attachment = static_cast<uint64>(PG_GETARG_INT64(0));
  int kept = 0;
  for (int i = 0; i < pulse::held_count; i++)
    if (pulse::held[i] != attachment) pulse::held[kept++] = pulse::held[i];
  pulse::held_count = kept;
  PG_RETURN_VOID();
}

PULSE_FUNCTION(pulse_incarnation) { PG_RETURN_INT64(pulse::incarnation()); }

// pulse._holds_attachment(attachment): whether it is this session's.
PULSE_FUNCTION(pulse_holds_attachment) {
  PG_RETURN_BOOL(pulse::holds_attachment(static_cast<uint64>(PG_GETARG_INT64(0))));
}

// pulse._attachment_state(attachment, incarnation): open, ended (by its client) or unknown (ended
// by the server, or of an earlier incarnation: silence decides).
PULSE_FUNCTION(pulse_attachment_state) {
  auto attachment = static_cast<uint64>(PG_GETARG_INT64(0));
  const char* state = "open";
  if (PG_GETARG_INT64(1) != pulse::incarnation())
    state = "unknown";
  else if (pulse::attachment_is_free(attachment))
    state = pulse::is_excused(attachment) ? "unknown" : "ended";
  PG_RETURN_TEXT_P(cstring_to_text(state));
}
