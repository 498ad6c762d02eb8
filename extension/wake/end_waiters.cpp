#include "wake/end_waiters.hpp"

#include "server/compat.hpp"
#include "shared/memory.hpp"
#include "wake/pending_wakes.hpp"

namespace pulse {
namespace {

constexpr uint64 kNoId = 0;
constexpr uint64 kEveryId = PG_UINT64_MAX;

struct Ends {
  SharedState* all;  // NULL: this transaction ends no job
  uint64 bits[kParentWords];

  void add(int64 id) {
    int bucket = parent_bucket(id);
    bits[bucket / 64] |= UINT64CONST(1) << (bucket % 64);
  }
  bool may_have(int64 id) const {
    int bucket = parent_bucket(id);
    return (bits[bucket / 64] >> (bucket % 64)) & 1;
  }
};

Ends ends;
EndWaiter* own_entry = nullptr;

bool waits_for_these(EndWaiter* waiter) {
  for (pg_atomic_uint64& awaited : waiter->ids) {
    uint64 id = pg_atomic_read_u64(&awaited);
    if (id == kEveryId || (id != kNoId && ends.may_have(static_cast<int64>(id)))) return true;
  }
  return false;
}

}  // namespace

void note_ended_job(int64 job_id) {
  SharedState* all = shared();
  if (!all) return;
  // The callback must not search the database.
  if (DatabaseState* database = this_database()) note_end_of_parent(database, job_id);
  ends.all = all;
  ends.add(job_id);
}

void note_ends_of_parents() {
  DatabaseState* database = this_database_if_known();
  if (!ends.all || !database) return;
  pg_memory_barrier();  // the jobs have ended for every later snapshot
  for (int i = 0; i < kParentWords; i++) {
    if (!ends.bits[i]) continue;
    uint64 awaited = ends.bits[i] & pg_atomic_read_u64(&database->awaited_parents[i]);
    if (awaited) note_ended_parents(i, awaited);
  }
}

bool copy_ended_parents(uint64* entries) {
  if (!ends.all) return false;
  memcpy(entries, ends.bits, sizeof(ends.bits));
  return true;
}

void wake_for_ends() {
  if (!ends.all) return;
  pg_memory_barrier();  // the jobs have ended for every later snapshot
  if (pg_atomic_read_u32(&ends.all->end_waiting) > 0)
    for (EndWaiter& waiter : ends.all->end_waiters) {
      uint32 process = pg_atomic_read_u32(&waiter.process);
      if (process != 0 && pg_atomic_read_u32(&waiter.database) == MyDatabaseId &&
          waits_for_these(&waiter))
        SetLatch(&ProcGlobal->allProcs[process - 1].procLatch);
    }
  forget_ends();
}

void forget_ends() {
  if (ends.all) memset(&ends, 0, sizeof(ends));
}

bool enter_end_waiting() {
  SharedState* all = shared();
  auto process = static_cast<uint32>(own_proc_number()) + 1;
  for (int i = 0; all && !own_entry && i < kEndWaiters; i++) {
    EndWaiter* entry = &all->end_waiters[i];
    uint32 owner = 0;
    if (pg_atomic_compare_exchange_u32(&entry->process, &owner, process)) own_entry = entry;
  }
  if (!own_entry) return false;
  pg_atomic_write_u32(&own_entry->database, MyDatabaseId);
  pg_atomic_fetch_add_u32(&all->end_waiting, 1);
  return true;
}

bool await_ends(const int64* job_ids, int count) {
  if (!own_entry) return false;
  bool is_changed = false;
  for (int i = 0; i < kAwaitedIds; i++) {
    uint64 id = count > kAwaitedIds ? kEveryId
                : i < count         ? static_cast<uint64>(job_ids[i])
                                    : kNoId;
    is_changed |= pg_atomic_exchange_u64(&own_entry->ids[i], id) != id;
  }
  pg_memory_barrier();  // before the snapshot of the reading that follows
  return is_changed;
}

void leave_end_waiting() {
  if (!own_entry) return;
  for (pg_atomic_uint64& id : own_entry->ids) pg_atomic_write_u64(&id, kNoId);
  pg_atomic_fetch_sub_u32(&shared()->end_waiting, 1);
  pg_atomic_write_u32(&own_entry->process, 0);
  own_entry = nullptr;
}

}  // namespace pulse

// pulse_internal.note_end(job_id): this transaction ends a job that does not run.
PULSE_FUNCTION(pulse_note_end) {
  pulse::note_ended_job(PG_GETARG_INT64(0));
  PG_RETURN_BOOL(true);
}
