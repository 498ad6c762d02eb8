#include "overwrite.hpp"

#include "version.hpp"

namespace pulse {
namespace {

bool has_eight_bytes(TupleDesc shape, AttrNumber column) {
  Form_pg_attribute attribute = TupleDescAttr(shape, column - 1);
  return attribute->attlen == sizeof(int64) && attribute->attnotnull && !attribute->attisdropped;
}

// So that a column's place does not depend on the row.
bool are_in_place(TupleDesc shape, const FixedColumn* columns, int count) {
  AttrNumber last = 0;
  for (int i = 0; i < count; i++) last = Max(last, columns[i].column);
  if (last > shape->natts) return false;
  for (AttrNumber column = 1; column <= last; column++)
    if (!has_eight_bytes(shape, column)) return false;
  return true;
}

// Of a row whose page is locked.
bool is_last_and_free(Relation table, HeapTuple seen, Buffer buffer) {
  HeapTupleData row = *seen;
  row.t_tableOid = RelationGetRelid(table);
  return HeapTupleSatisfiesUpdate(&row, GetCurrentCommandId(false), buffer) == TM_Ok;
}

void write_logged(Relation table, HeapTuple seen, Buffer buffer, const FixedColumn* columns,
                  int count) {
  GenericXLogState* record = GenericXLogStart(table);
  Page page = GenericXLogRegisterBuffer(record, buffer, 0);
  auto* row = reinterpret_cast<HeapTupleHeader>(
      PageGetItem(page, PageGetItemId(page, ItemPointerGetOffsetNumber(&seen->t_self))));
  char* data = reinterpret_cast<char*>(row) + row->t_hoff;
  for (int i = 0; i < count; i++)
    memcpy(data + (columns[i].column - 1) * sizeof(int64), &columns[i].value, sizeof(int64));
  GenericXLogFinish(record);
}

}  // namespace

bool overwrite_row(Relation table, TupleTableSlot* seen, const FixedColumn* columns, int count) {
  if (!TTS_IS_BUFFERTUPLE(seen) || !are_in_place(RelationGetDescr(table), columns, count))
    return false;
  auto* slot = reinterpret_cast<BufferHeapTupleTableSlot*>(seen);
  LockBuffer(slot->buffer, BUFFER_LOCK_EXCLUSIVE);
  bool is_free = is_last_and_free(table, slot->base.tuple, slot->buffer);
  if (is_free) write_logged(table, slot->base.tuple, slot->buffer, columns, count);
  LockBuffer(slot->buffer, BUFFER_LOCK_UNLOCK);
  return is_free;
}

}  // namespace pulse
