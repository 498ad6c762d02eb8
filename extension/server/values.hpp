// A composite value: its shape and its fields.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// To be released.
inline TupleDesc shape_of(HeapTupleHeader value) {
  return lookup_rowtype_tupdesc(HeapTupleHeaderGetTypeId(value), HeapTupleHeaderGetTypMod(value));
}

inline void read_fields(HeapTupleHeader value, TupleDesc shape, Datum* values, bool* nulls) {
  HeapTupleData tuple = {};
  tuple.t_len = HeapTupleHeaderGetDatumLength(value);
  tuple.t_data = value;
  heap_deform_tuple(&tuple, shape, values, nulls);
}

}  // namespace pulse
