#include "liveness/inplace_update.hpp"

#include "server/compat.hpp"

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

// --- of a row whose page is locked ---------------------------------------------------------------

bool is_last_and_free(HeapTuple row, Buffer buffer) {
  return HeapTupleSatisfiesUpdate(row, GetCurrentCommandId(false), buffer) == TM_Ok;
}

char* place_of(HeapTuple row, AttrNumber column) {
  return reinterpret_cast<char*>(row->t_data) + row->t_data->t_hoff + (column - 1) * sizeof(int64);
}

void set_columns(HeapTuple row, const FixedColumn* columns, int count) {
  for (int i = 0; i < count; i++)
    memcpy(place_of(row, columns[i].column), &columns[i].value, sizeof(int64));
}

// What a generic record says of a page: from where, how many bytes, and these
// (access/transam/generic_xlog.c). test/e2e/lagging_standby.pl fails where a server reads it
// otherwise.
struct Fragment {
  OffsetNumber offset;
  OffsetNumber length;
};

// The server's own way to make such a record copies the page twice and compares all of it, in
// 66 kB that are taken for each.
void write_logged(Relation table, HeapTuple row, Buffer buffer, const FixedColumn* columns,
                  int count) {
  AttrNumber first = columns[0].column;
  AttrNumber last = first;
  for (int i = 1; i < count; i++) {
    first = Min(first, columns[i].column);
    last = Max(last, columns[i].column);
  }
  char* from = place_of(row, first);
  Fragment fragment = {static_cast<OffsetNumber>(from - BufferGetPage(buffer)),
                       static_cast<OffsetNumber>(place_of(row, last + 1) - from)};
  bool is_logged = RelationNeedsWAL(table);
  if (is_logged) XLogBeginInsert();
  START_CRIT_SECTION();
  set_columns(row, columns, count);
  MarkBufferDirty(buffer);
  if (is_logged) {
    XLogRegisterBuffer(0, buffer, REGBUF_STANDARD);
    XLogRegisterBufData(0, reinterpret_cast<char*>(&fragment), sizeof(fragment));
    XLogRegisterBufData(0, from, fragment.length);
    XLogRecPtr end = XLogInsert(RM_GENERIC_ID, 0);
    PageSetLSN(BufferGetPage(buffer), end);
  }
  END_CRIT_SECTION();
}

}  // namespace

bool overwrite_row(Relation table, TupleTableSlot* seen, const FixedColumn* columns, int count) {
  if (!TTS_IS_BUFFERTUPLE(seen) || !are_in_place(RelationGetDescr(table), columns, count))
    return false;
  auto* slot = reinterpret_cast<BufferHeapTupleTableSlot*>(seen);
  HeapTupleData row = *slot->base.tuple;
  row.t_tableOid = RelationGetRelid(table);
  LockBuffer(slot->buffer, BUFFER_LOCK_EXCLUSIVE);
  bool is_free = is_last_and_free(&row, slot->buffer);
  if (is_free) write_logged(table, &row, slot->buffer, columns, count);
  LockBuffer(slot->buffer, BUFFER_LOCK_UNLOCK);
  return is_free;
}

}  // namespace pulse
