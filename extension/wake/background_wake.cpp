#include "wake/background_wake.hpp"

namespace pulse {
namespace {

void set_latch_at(pg_atomic_uint32* place) {
  uint32 process = pg_atomic_read_u32(place);
  if (process != 0) SetLatch(&ProcGlobal->allProcs[process - 1].procLatch);
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
  pg_atomic_write_u32(&all->has_news, 1);
  set_latch_at(&all->launcher);
}

}  // namespace pulse
