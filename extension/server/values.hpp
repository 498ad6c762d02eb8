// Access to values of the server: fields of rows, texts, composites.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

constexpr NullableDatum kNull = {0, true};

// The caller releases the result with ReleaseTupleDesc().
inline TupleDesc shape_of(HeapTupleHeader value) {
  return lookup_rowtype_tupdesc(HeapTupleHeaderGetTypeId(value), HeapTupleHeaderGetTypMod(value));
}

inline void read_fields(HeapTupleHeader value, TupleDesc shape, Datum* values, bool* nulls) {
  HeapTupleData tuple = {};
  tuple.t_len = HeapTupleHeaderGetDatumLength(value);
  tuple.t_data = value;
  heap_deform_tuple(&tuple, shape, values, nulls);
}

inline int16 int2_of(TupleTableSlot* row, int column) {
  bool isnull;
  return DatumGetInt16(slot_getattr(row, column, &isnull));
}

inline bool text_is(Datum value, const char* expected) {
  text* have = DatumGetTextPP(value);
  Size length = strlen(expected);
  return VARSIZE_ANY_EXHDR(have) == length && memcmp(VARDATA_ANY(have), expected, length) == 0;
}

}  // namespace pulse
