// Access to values of the server: fields of rows, texts, composites.
#pragma once

#include "server/postgres.hpp"

#include <initializer_list>

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

inline NullableDatum given(Datum value) { return {value, false}; }

// The row that a function with OUT parameters returns.
inline Datum result_row(FunctionCallInfo fcinfo, std::initializer_list<NullableDatum> fields) {
  TupleDesc shape;
  if (get_call_result_type(fcinfo, nullptr, &shape) != TYPEFUNC_COMPOSITE ||
      shape->natts != static_cast<int>(fields.size()))
    elog(ERROR, "this function does not return such a row");
  auto* values = static_cast<Datum*>(palloc(sizeof(Datum) * fields.size()));
  auto* nulls = static_cast<bool*>(palloc(fields.size()));
  int count = 0;
  for (const NullableDatum& field : fields) {
    values[count] = field.value;
    nulls[count++] = field.isnull;
  }
  return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(shape), values, nulls));
}

// The value of a column of a row; not meaningful for a NULL.
inline Datum value_of(TupleTableSlot* row, int column) {
  bool isnull;
  return slot_getattr(row, column, &isnull);
}

inline int16 int2_of(TupleTableSlot* row, int column) {
  return DatumGetInt16(value_of(row, column));
}

inline bool is_same_text(Datum a, Datum b) {
  return DatumGetBool(DirectFunctionCall2Coll(texteq, C_COLLATION_OID, a, b));
}

inline bool text_is(Datum value, const char* expected) {
  text* have = DatumGetTextPP(value);
  Size length = strlen(expected);
  return VARSIZE_ANY_EXHDR(have) == length && memcmp(VARDATA_ANY(have), expected, length) == 0;
}

// FNV-1a with 64 bits (Fowler, Noll, Vo: draft-eastlake-fnv). Indexes and lock tags store hashes,
// so the function must never change.
inline uint64 fnv1a(const char* data, int length) {
  uint64 hash = UINT64CONST(14695981039346656037);
  for (int i = 0; i < length; i++) {
    hash ^= static_cast<unsigned char>(data[i]);
    hash *= UINT64CONST(1099511628211);
  }
  return hash;
}

inline uint64 fnv1a(const text* value) {
  return fnv1a(VARDATA_ANY(value), VARSIZE_ANY_EXHDR(value));
}

}  // namespace pulse
