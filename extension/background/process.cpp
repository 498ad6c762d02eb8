#include "background/process.hpp"

#include "server/clocks.hpp"
#include "server/compat.hpp"
#include "server/settings.hpp"

namespace pulse {
namespace {

uint32 process_number_of_self() { return static_cast<uint32>(own_proc_number()) + 1; }

extern "C" void pulse_process_exit(int, Datum field) {
  uint32 expected = process_number_of_self();
  pg_atomic_compare_exchange_u32(reinterpret_cast<pg_atomic_uint32*>(DatumGetPointer(field)),
                                 &expected, 0);
}

}  // namespace

void start_background_process() {
  pqsignal(SIGTERM, die);
  pqsignal(SIGHUP, SignalHandlerForConfigReload);
  BackgroundWorkerUnblockSignals();
}

bool try_publish_process(pg_atomic_uint32* field) {
  uint32 none = 0;
  if (!pg_atomic_compare_exchange_u32(field, &none, process_number_of_self())) return false;
  on_shmem_exit(pulse_process_exit, PointerGetDatum(field));
  return true;
}

void publish_process(pg_atomic_uint32* field) {
  pg_atomic_write_u32(field, process_number_of_self());
  on_shmem_exit(pulse_process_exit, PointerGetDatum(field));
}

bool sleep_in_background(int64 wait_us) {
  // At most a day, because longer timeouts overflow a 32-bit long in milliseconds.
  long timeout_ms = static_cast<long>((Min(Max(wait_us, 0), USECS_PER_DAY) + 999) / 1000);
  WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, timeout_ms,
            PG_WAIT_EXTENSION);
  ResetLatch(MyLatch);
  // Exits here, because the usual interrupt would log FATAL.
  if (ProcDiePending) proc_exit(1);
  // There is no statement to cancel, and an error here would end the process.
  QueryCancelPending = false;
  CHECK_FOR_INTERRUPTS();
  if (!ConfigReloadPending) return false;
  ConfigReloadPending = false;
  ProcessConfigFile(PGC_SIGHUP);
  return true;
}

bool database_is_wanted(Oid database) {
  LOCKTAG tag;
  SET_LOCKTAG_OBJECT(tag, InvalidOid, DatabaseRelationId, database, 0);
  // The same lock as a starting session takes.
  if (LockAcquire(&tag, RowExclusiveLock, false, true) == LOCKACQUIRE_NOT_AVAIL) return true;
  LockRelease(&tag, RowExclusiveLock, false);
  return false;
}

int64 sweep_due_in_us(DatabaseState* database) {
  uint64 at = pg_atomic_read_u64(&database->sweep_due);
  if (at == kNever) return PG_INT64_MAX / 2;
  return static_cast<int64>(at) - wall_now();
}

}  // namespace pulse
