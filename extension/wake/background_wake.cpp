#include "wake/background_wake.hpp"

#include "wake/waiters.hpp"

namespace pulse {
namespace {

void set_latch_at(pg_atomic_uint32* process_field) {
  uint32 process_number = pg_atomic_read_u32(process_field);
  if (process_number != 0) SetLatch(&ProcGlobal->allProcs[process_number - 1].procLatch);
}

}  // namespace

void wake_launcher() { set_latch_at(&shared()->launcher); }

void request_sweep(DatabaseState* database, TimestampTz at) {
  if (!lower_due(&database->sweep_due, at)) return;
  set_latch_at(&database->maintainer.process);
  wake_launcher();
  signal_waiters();
}

void signal_launcher() {
  DatabaseState* database = this_database();
  if (!shared() || (database && pg_atomic_read_u32(&database->maintainer.is_serving))) return;
  pg_atomic_write_u32(&shared()->must_retry, 1);
  wake_launcher();
}

}  // namespace pulse
