#include "access/ordered_scan.hpp"

#include "access/columns.hpp"
#include "access/index_lookup.hpp"
#include "server/compat.hpp"
#include "server/values.hpp"

extern "C" {
#include "executor/instrument.h"
}

namespace pulse {

constexpr int kBoundKeys = 2;  // a lower and an upper bound of the scan

JobOrder order_of(TupleTableSlot* row) {
  return {int2_of(row, kJobPriority), DatumGetTimestampTz(value_of(row, kJobRunAt)),
          DatumGetInt64(value_of(row, kJobId))};
}

bool sorts_before(const JobOrder* a, const JobOrder* b) {
  if (a->priority != b->priority) return a->priority < b->priority;
  if (a->run_at != b->run_at) return a->run_at < b->run_at;
  return a->id < b->id;
}

void fix_text(OrderedScan* scan, Datum value) {
  init_text_key(&scan->keys[scan->prefix], scan->prefix + 1, BTEqualStrategyNumber, F_TEXTEQ,
                value);
  scan->prefix++;
}

bool first_due_in_order(OrderedScan* scan) {
  begin_ordered_scan(scan);
  rescan_priorities(scan, BTGreaterEqualStrategyNumber, F_INT2GE, PG_INT16_MIN, PG_INT16_MAX);
  return next_due_in_order(scan);
}

bool first_due_from(OrderedScan* scan, const JobOrder& from) {
  begin_ordered_scan(scan);
  rescan_from(scan, from, PG_INT16_MAX);
  return next_due_in_order(scan);
}

bool next_due_in_order(OrderedScan* scan) {
  while (index_getnext_slot(scan->scan, ForwardScanDirection, scan->row)) {
    CHECK_FOR_INTERRUPTS();
    if (!read_ordered_row(scan)) continue;
    if (is_row_due(scan)) return true;
    leave_in_order(scan);
    // Every later entry of this priority is due later still.
    rescan_priorities(scan, BTGreaterStrategyNumber, F_INT2GT, scan->priority, PG_INT16_MAX);
  }
  return false;
}

void leave_in_order(OrderedScan* scan) {
  if (!scan->has_left) scan->left = *scan;
  scan->has_left = true;
}

void end_ordered_scan(OrderedScan* scan) {
  index_endscan(scan->scan);
  ExecDropSingleTupleTableSlot(scan->row);
}

void begin_ordered_scan(OrderedScan* scan) {
  scan->next_due = 0;
  scan->row = table_slot_create(scan->relation, nullptr);
  scan->scan =
      begin_index_scan(scan->relation, scan->index, scan->snapshot, scan->prefix + kBoundKeys);
}

void rescan_priorities(OrderedScan* scan, StrategyNumber strategy, Oid function, int16 bound,
                       int16 last) {
  ScanKeyInit(&scan->keys[scan->prefix], static_cast<AttrNumber>(scan->prefix + 1), strategy,
              function, Int16GetDatum(bound));
  rescan_up_to(scan, last);
}

void init_row_key(ScanKey key, ScanKeyData* parts, int column, StrategyNumber strategy,
                  const Datum* values, int count) {
  static constexpr Oid kCompare[] = {F_BTINT2CMP, F_BTTEXTCMP, F_BTINT2CMP, F_TIMESTAMPTZ_CMP,
                                     F_BTINT8CMP};
  for (int i = 0; i < count; i++) {
    Oid compare = kCompare[lengthof(kCompare) - count + i];
    ScanKeyEntryInitialize(&parts[i], SK_ROW_MEMBER | (i == count - 1 ? SK_ROW_END : 0),
                           static_cast<AttrNumber>(column + i), strategy, InvalidOid,
                           compare == F_BTTEXTCMP ? C_COLLATION_OID : InvalidOid, compare,
                           values[i]);
  }
  memset(key, 0, sizeof(*key));
  key->sk_flags = SK_ROW_HEADER;
  key->sk_attno = parts[0].sk_attno;
  key->sk_strategy = strategy;
  key->sk_argument = PointerGetDatum(parts);
}

void rescan_from(OrderedScan* scan, const JobOrder& from, int16 last) {
  const Datum values[] = {Int16GetDatum(from.priority), TimestampTzGetDatum(from.run_at),
                          Int64GetDatum(from.id)};
  init_row_key(&scan->keys[scan->prefix], scan->key_parts, scan->prefix + 1,
               BTGreaterEqualStrategyNumber, values, lengthof(values));
  rescan_up_to(scan, last);
}

void rescan_up_to(OrderedScan* scan, int16 last) {
  ScanKeyInit(&scan->keys[scan->prefix + 1], static_cast<AttrNumber>(scan->prefix + 1),
              BTLessEqualStrategyNumber, F_INT2LE, Int16GetDatum(last));
  index_rescan(scan->scan, scan->keys, scan->prefix + kBoundKeys, nullptr, 0);
}

bool read_ordered_row(OrderedScan* scan) {
  if (DatumGetObjectId(value_of(scan->row, kJobState)) != scan->state) return false;
  static_cast<JobOrder&>(*scan) = order_of(scan->row);
  return true;
}

bool is_row_due(OrderedScan* scan) {
  if (scan->run_at <= scan->now) return true;
  if (!scan->next_due || scan->run_at < scan->next_due) scan->next_due = scan->run_at;
  return false;
}

int64 pages_read() { return pgBufferUsage.shared_blks_hit + pgBufferUsage.shared_blks_read; }

}  // namespace pulse
