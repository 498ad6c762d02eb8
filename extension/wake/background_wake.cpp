#include "wake/background_wake.hpp"

namespace pulse {
namespace {

void set_latch_at(pg_atomic_uint32* process_field) {
  uint32 process_number = pg_atomic_read_u32(process_field);
  if (process_number != 0) SetLatch(&ProcGlobal->allProcs[process_number - 1].procLatch);
}

}  // namespace

void wake_background(DatabaseState* database) {
  SharedState* all = shared();
  if (!all || pg_atomic_read_u32(&all->launcher) == 0) return;
  set_latch_at(&database->maintainer.process);
  set_latch_at(&all->launcher);
}

void wake_maintainer(DatabaseState* database) { set_latch_at(&database->maintainer.process); }

void signal_launcher() {
  SharedState* all = shared();
  if (!all || pg_atomic_read_u32(&all->launcher) == 0) return;
  DatabaseState* database = this_database();
  if (database && pg_atomic_read_u32(&database->maintainer.is_serving)) return;
  pg_atomic_write_u32(&all->must_retry, 1);
  set_latch_at(&all->launcher);
}

}  // namespace pulse
