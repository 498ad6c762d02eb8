#include "access/sql_version.hpp"

#include "server/compat.hpp"
#include "server/postgres.hpp"

namespace pulse {
namespace {

// The version in pg_extension; null where the extension is not installed.
char* installed_version() {
  Relation extensions = table_open(ExtensionRelationId, AccessShareLock);
  ScanKeyData key;
  ScanKeyInit(&key, Anum_pg_extension_extname, BTEqualStrategyNumber, F_NAMEEQ,
              CStringGetDatum("pg_pulse"));
  SysScanDesc scan = systable_beginscan(extensions, ExtensionNameIndexId, true, nullptr, 1, &key);
  HeapTuple row = systable_getnext(scan);
  bool isnull = true;
  Datum value = 0;
  if (row) value = catalogue_field(row, Anum_pg_extension_extversion, extensions, &isnull);
  char* version = isnull ? nullptr : TextDatumGetCString(value);
  systable_endscan(scan);
  table_close(extensions, AccessShareLock);
  return version;
}

int64 number_of(const char* version) {
  int major = 0, minor = 0, patch = 0;
  sscanf(version, "%d.%d.%d", &major, &minor, &patch);
  return (major * INT64CONST(1000000) + minor) * 1000000 + patch;
}

}  // namespace

void require_served_sql() {
  char* version = installed_version();
  if (!version || number_of(version) <= number_of(PULSE_VERSION)) return;
  ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                  errmsg("the library of pg_pulse that this session has loaded is too old"),
                  errdetail("It is of version %s, and the SQL of %s.", PULSE_VERSION, version),
                  errhint("Install the files of %s. Then restart the server if it preloads "
                          "pg_pulse, else connect anew.",
                          version)));
}

}  // namespace pulse
