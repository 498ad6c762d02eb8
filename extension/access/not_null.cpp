#include "access/not_null.hpp"

#include "access/catalog.hpp"

extern "C" {
#include "port/pg_bitutils.h"
}

namespace pulse {
namespace {

// The columns of a table that are NOT NULL, a bit for each. A change of the table makes another
// generation of the catalog.
struct RequiredColumns {
  Oid table;
  uint64 generation;
  uint64 columns;
};

uint64 required_columns(Relation table) {
  static RequiredColumns known[8];
  Oid oid = RelationGetRelid(table);
  RequiredColumns* required = &known[oid % lengthof(known)];
  uint64 generation = catalog()->generation;
  if (required->table == oid && required->generation == generation) return required->columns;
  TupleDesc shape = RelationGetDescr(table);
  uint64 columns = 0;
  for (int i = 0; i < shape->natts; i++)
    if (TupleDescAttr(shape, i)->attnotnull) columns |= UINT64CONST(1) << i;
  *required = {oid, generation, columns};
  return columns;
}

[[noreturn]] void refuse_null_in(Relation table, int column) {
  ereport(ERROR,
          (errcode(ERRCODE_NOT_NULL_VIOLATION),
           errmsg("null value in column \"%s\" of relation \"%s\" violates not-null constraint",
                  NameStr(TupleDescAttr(RelationGetDescr(table), column)->attname),
                  RelationGetRelationName(table)),
           errtablecol(table, column + 1)));
  pg_unreachable();
}

}  // namespace

void refuse_nulls(Relation table, HeapTuple row) {
  if (HeapTupleNoNulls(row)) return;
  uint64 given = 0;
  for (int i = 0; i < BITMAPLEN(HeapTupleHeaderGetNatts(row->t_data)); i++)
    given |= static_cast<uint64>(row->t_data->t_bits[i]) << (i * BITS_PER_BYTE);
  uint64 missing = required_columns(table) & ~given;
  if (missing) refuse_null_in(table, pg_rightmost_one_pos64(missing));
}

}  // namespace pulse
