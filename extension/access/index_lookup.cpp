#include "access/index_lookup.hpp"

#include "server/compat.hpp"
#include "server/values.hpp"

namespace pulse {
namespace {

// The upper bound matters: any number of dead rows may follow the last id.
void seek_between(IndexLookup* ids, int64 first, int64 last) {
  ScanKeyData keys[kIdKeys];
  ScanKeyInit(&keys[0], 1, BTGreaterEqualStrategyNumber, F_INT8GE, Int64GetDatum(first));
  ScanKeyInit(&keys[1], 1, BTLessEqualStrategyNumber, F_INT8LE, Int64GetDatum(last));
  seek_keys(ids, keys);
}

int64 current_id(const IndexLookup* ids) { return DatumGetInt64(value_of(ids->row, 1)); }

}  // namespace

void open_index_lookup(IndexLookup* ids, Relation table, Oid index, Snapshot snapshot, int keys) {
  ids->table = table;
  ids->index = index_open(index, AccessShareLock);
  ids->row = table_slot_create(table, nullptr);
  ids->scan = begin_index_scan(table, ids->index, snapshot, keys);
  ids->uses_range_scan = ids->has_row = false;
}

void close_index_lookup(IndexLookup* ids) {
  index_endscan(ids->scan);
  ExecDropSingleTupleTableSlot(ids->row);
  index_close(ids->index, AccessShareLock);
}

void seek_id(IndexLookup* ids, int64 id) { seek_between(ids, id, id); }

void seek_keys(IndexLookup* rows, ScanKey keys) {
  index_rescan(rows->scan, keys, rows->scan->numberOfKeys, nullptr, 0);
}

bool next_row(IndexLookup* rows) {
  return index_getnext_slot(rows->scan, ForwardScanDirection, rows->row);
}

bool find_id(IndexLookup* ids, int64 id) {
  if (!ids->uses_range_scan) {
    seek_id(ids, id);
    return next_row(ids);
  }
  while (ids->has_row && current_id(ids) < id) ids->has_row = next_row(ids);
  return ids->has_row && current_id(ids) == id;
}

void expect_ids(IndexLookup* ids, int64 first, int64 last, int count) {
  constexpr int kMin = 8;
  constexpr int kMaxIdsPerRow = 2;
  uint64 span = static_cast<uint64>(last) - static_cast<uint64>(first);
  ids->uses_range_scan =
      count >= kMin && last > first && span <= static_cast<uint64>(count) * kMaxIdsPerRow;
  if (!ids->uses_range_scan) return;
  seek_between(ids, first, last);
  ids->has_row = next_row(ids);
}

void init_text_key(ScanKey key, int column, StrategyNumber strategy, Oid function, Datum value) {
  ScanKeyEntryInitialize(key, 0, static_cast<AttrNumber>(column), strategy, InvalidOid,
                         C_COLLATION_OID, function, value);
}

}  // namespace pulse
