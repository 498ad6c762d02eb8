#include "id_scan.hpp"

#include "version.hpp"

namespace pulse {

void open_id_scan(IdScan* ids, Relation table, Oid index, Snapshot snapshot) {
  ids->table = table;
  ids->index = index_open(index, AccessShareLock);
  ids->row = table_slot_create(table, nullptr);
  ids->scan = begin_index_scan(table, ids->index, snapshot, 1);
}

void close_id_scan(IdScan* ids) {
  index_endscan(ids->scan);
  ExecDropSingleTupleTableSlot(ids->row);
  index_close(ids->index, AccessShareLock);
}

void seek_id(IdScan* ids, int64 id) {
  ScanKeyData key;
  ScanKeyInit(&key, 1, BTEqualStrategyNumber, F_INT8EQ, Int64GetDatum(id));
  index_rescan(ids->scan, &key, 1, nullptr, 0);
}

bool next_of_id(IdScan* ids) {
  return index_getnext_slot(ids->scan, ForwardScanDirection, ids->row);
}

}  // namespace pulse
