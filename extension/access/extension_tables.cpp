#include "access/extension_tables.hpp"

#include "access/local_settings.hpp"

namespace pulse {
namespace {

constexpr char kTables[] =
    "SELECT e.oid, e.extowner, c.oid, e.xmin FROM pg_extension AS e"
    " JOIN pg_depend AS d ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid"
    " AND d.classid = 'pg_class'::regclass"
    " JOIN pg_class AS c ON c.oid = d.objid AND c.relkind = 'r' WHERE e.extname = 'pg_pulse'";

Datum value_in(uint64 row, int column) {
  bool isnull;
  return SPI_getbinval(SPI_tuptable->vals[row], SPI_tuptable->tupdesc, column, &isnull);
}

}  // namespace

ExtensionTables find_extension_tables() {
  ExtensionTables tables = {};
  under_statement_settings([&tables] {
    if (SPI_connect() != SPI_OK_CONNECT || SPI_execute(kTables, false, kMaxTables) != SPI_OK_SELECT)
      elog(ERROR, "could not find the tables of pg_pulse");
    for (uint64 row = 0; row < SPI_processed; row++) {
      tables.extension = DatumGetObjectId(value_in(row, 1));
      tables.owner = DatumGetObjectId(value_in(row, 2));
      tables.table[tables.count++] = DatumGetObjectId(value_in(row, 3));
      tables.changed_by = DatumGetTransactionId(value_in(row, 4));
    }
    SPI_finish();
  });
  return tables;
}

bool is_same_extension(const ExtensionTables& a, const ExtensionTables& b) {
  return a.extension == b.extension && a.changed_by == b.changed_by;
}

}  // namespace pulse
