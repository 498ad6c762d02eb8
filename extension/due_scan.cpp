#include "due_scan.hpp"

#include "catalog.hpp"

extern "C" {
#include "catalog/pg_collation.h"
}

namespace pulse {
namespace {

void init_priority_key(DueScan* scan, StrategyNumber strategy, Oid function, int16 priority) {
  ScanKeyInit(&scan->keys[scan->prefix], static_cast<AttrNumber>(scan->prefix + 1), strategy,
              function, Int16GetDatum(priority));
}

bool settle(DueScan* scan) {
  while (index_getnext_slot(scan->scan, ForwardScanDirection, scan->slot)) {
    CHECK_FOR_INTERRUPTS();
    bool isnull;
    scan->priority = DatumGetInt16(slot_getattr(scan->slot, kJobPriority, &isnull));
    scan->run_at = DatumGetTimestampTz(slot_getattr(scan->slot, kJobRunAt, &isnull));
    scan->id = DatumGetInt64(slot_getattr(scan->slot, kJobId, &isnull));
    if (scan->run_at <= scan->now) return true;
    if (!scan->next_due || scan->run_at < scan->next_due) scan->next_due = scan->run_at;
    // Everything behind it in this priority is later still.
    init_priority_key(scan, BTGreaterStrategyNumber, F_INT2GT, scan->priority);
    index_rescan(scan->scan, scan->keys, scan->prefix + 1, nullptr, 0);
  }
  return false;
}

}  // namespace

void init_text_key(ScanKey key, int column, StrategyNumber strategy, Oid function, Datum value) {
  ScanKeyEntryInitialize(key, 0, static_cast<AttrNumber>(column), strategy, InvalidOid,
                         C_COLLATION_OID, function, value);
}

void fix_text(DueScan* scan, Datum value) {
  init_text_key(&scan->keys[scan->prefix], scan->prefix + 1, BTEqualStrategyNumber, F_TEXTEQ,
                value);
  scan->prefix++;
}

void fix_int2(DueScan* scan, int16 value) {
  ScanKeyInit(&scan->keys[scan->prefix], static_cast<AttrNumber>(scan->prefix + 1),
              BTEqualStrategyNumber, F_INT2EQ, Int16GetDatum(value));
  scan->prefix++;
}

namespace {

bool start(DueScan* scan) {
  scan->slot = table_slot_create(scan->relation, nullptr);
  scan->scan = index_beginscan(scan->relation, scan->index, scan->snapshot, scan->prefix + 1, 0);
  index_rescan(scan->scan, scan->keys, scan->prefix + 1, nullptr, 0);
  return settle(scan);
}

}  // namespace

bool first_due_beyond(DueScan* scan, int16 priority, TimestampTz run_at) {
  scan->next_due = run_at;
  init_priority_key(scan, BTGreaterStrategyNumber, F_INT2GT, priority);
  return start(scan);
}

bool first_due(DueScan* scan) {
  scan->next_due = 0;
  init_priority_key(scan, BTGreaterEqualStrategyNumber, F_INT2GE, PG_INT16_MIN);
  return start(scan);
}

bool next_due(DueScan* scan) { return settle(scan); }

void end_due(DueScan* scan) {
  index_endscan(scan->scan);
  ExecDropSingleTupleTableSlot(scan->slot);
}

bool sorts_before(const DueScan* a, const DueScan* b) {
  if (a->priority != b->priority) return a->priority < b->priority;
  if (a->run_at != b->run_at) return a->run_at < b->run_at;
  return a->id < b->id;
}

}  // namespace pulse
