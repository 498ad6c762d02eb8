#include "wake/prepared_notes.hpp"

#include "shared/memory.hpp"
#include "wake/end_waiters.hpp"

extern "C" {
#include "access/twophase.h"
}

namespace pulse {
namespace {

// States of an entry beside the id of a transaction.
constexpr uint32 kFreeEntry = InvalidTransactionId;
constexpr uint32 kBusyEntry = BootstrapTransactionId;

struct Entry {
  pg_atomic_uint32 xid;  // guard: atomic
  // Guard of both: owner while `xid` is kBusyEntry, then constant.
  Oid database;
  PreparedNotes notes;
};

struct Table {
  TimestampTz created_at;  // guard: constant
  pg_atomic_uint32 used;   // number of entries in use; guard: atomic
  Entry entries[FLEXIBLE_ARRAY_MEMBER];
};

Table* table = nullptr;

// A second entry for each transaction: the entry of an ended transaction stays until a claim or
// sweep of its database.
int entry_count() { return 2 * max_prepared_xacts; }

bool change_entry(Entry* entry, uint32 from, uint32 to) {
  return pg_atomic_compare_exchange_u32(&entry->xid, &from, to);
}

Entry* take_free_note() {
  for (int i = 0; i < entry_count(); i++)
    if (change_entry(&table->entries[i], kFreeEntry, kBusyEntry)) return &table->entries[i];
  return nullptr;
}

void enter_notes(Entry* entry, TransactionId xid) {
  entry->database = MyDatabaseId;
  pg_atomic_fetch_add_u32(&table->used, 1);
  pg_atomic_exchange_u32(&entry->xid, xid);
}

bool is_entered(TransactionId xid) {
  for (int i = 0; i < entry_count(); i++)
    if (pg_atomic_read_u32(&table->entries[i].xid) == xid) return true;
  return false;
}

// Notes that stand for any work: claims check every queue, level and low-water mark.
void note_anything(PreparedNotes* notes) {
  memset(notes, 0, sizeof(PreparedNotes));
  notes->ready.bits = notes->parked.bits = ~UINT64CONST(0);
  for (TimestampTz& at : notes->ready.at) at = PG_INT64_MIN;
  for (ParkedKey& at : notes->parked.at) at = {PG_INT16_MIN, PG_INT64_MIN};
  notes->freed_levels = kAllLevelGroups;
  notes->checks_anew = true;
}

}  // namespace

Size prepared_notes_size() {
  return add_size(offsetof(Table, entries), mul_size(entry_count(), sizeof(Entry)));
}

void create_prepared_notes() {
  if (max_prepared_xacts == 0) return;
  table = static_cast<Table*>(shared_area(
      "pg_pulse prepared transactions", prepared_notes_size(), [](void* area, Size size) {
        memset(area, 0, size);
        auto* fresh = static_cast<Table*>(area);
        fresh->created_at = GetCurrentTimestamp();
        pg_atomic_init_u32(&fresh->used, 0);
        for (int i = 0; i < entry_count(); i++)
          pg_atomic_init_u32(&fresh->entries[i].xid, kFreeEntry);
      }));
}

void leave_notes_to_prepared() {
  uint64 ended_parents[kParentWords] = {};
  if (!table || !(copy_ended_parents(ended_parents) || has_notes())) return;
  Entry* entry = take_free_note();
  if (!entry) return;
  memset(&entry->notes, 0, sizeof(PreparedNotes));
  copy_notes(&entry->notes);
  memcpy(entry->notes.ended_parents, ended_parents, sizeof(ended_parents));
  enter_notes(entry, GetTopTransactionIdIfAny());
}

bool take_notes_of_ended(PreparedNotes* notes) {
  if (!table || pg_atomic_read_u32(&table->used) == 0) return false;
  for (int i = 0; i < entry_count(); i++) {
    Entry* entry = &table->entries[i];
    TransactionId xid = pg_atomic_read_u32(&entry->xid);
    if (!TransactionIdIsNormal(xid)) continue;
    pg_read_barrier();
    if (entry->database != MyDatabaseId || TransactionIdIsInProgress(xid)) continue;
    if (!change_entry(entry, xid, kBusyEntry)) continue;
    *notes = entry->notes;
    pg_atomic_exchange_u32(&entry->xid, kFreeEntry);
    pg_atomic_fetch_sub_u32(&table->used, 1);
    return true;
  }
  return false;
}

void publish_notes(DatabaseState* database, const PreparedNotes& notes) {
  set_promotion_marks(database, notes.promotion_marks);
  for (int i = 0; i < kParentWords; i++) {
    uint64 awaited = notes.ended_parents[i] & pg_atomic_read_u64(&database->awaited_parents[i]);
    if (awaited) pg_atomic_fetch_or_u64(&database->promotion_marks[kQueueWords + i], awaited);
  }
  publish_freed_levels(database, notes.freed_levels);
  if (notes.checks_anew) pg_atomic_write_u32(&database->first_check, kCheckIsDue);
  pg_atomic_fetch_add_u64(&database->any_generation, 1);
  publish_due_times(database, notes.due, notes.parked_due, notes.sweep_due);
  wake_waiters(database, notes.jobs, true);
}

}  // namespace pulse

// pulse_internal.await_prepared(xid, prepared): enters a transaction that may have been prepared
// before the area was created.
PULSE_FUNCTION(pulse_await_prepared) {
  using namespace pulse;
  TransactionId xid = PG_GETARG_TRANSACTIONID(0);
  bool is_unknown = table && PG_GETARG_TIMESTAMPTZ(1) < table->created_at && !is_entered(xid);
  if (Entry* entry = is_unknown ? take_free_note() : nullptr) {
    note_anything(&entry->notes);
    enter_notes(entry, xid);
  }
  PG_RETURN_BOOL(is_unknown);
}
