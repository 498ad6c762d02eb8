#include "access/extension_tables.hpp"

namespace pulse {
namespace {

void find_extension_row(ExtensionTables* tables) {
  Relation extensions = table_open(ExtensionRelationId, AccessShareLock);
  ScanKeyData key;
  ScanKeyInit(&key, Anum_pg_extension_extname, BTEqualStrategyNumber, F_NAMEEQ,
              CStringGetDatum("pg_pulse"));
  SysScanDesc scan = systable_beginscan(extensions, ExtensionNameIndexId, true, nullptr, 1, &key);
  HeapTuple tuple = systable_getnext(scan);
  if (HeapTupleIsValid(tuple)) {
    auto* row = reinterpret_cast<Form_pg_extension>(GETSTRUCT(tuple));
    tables->extension = row->oid;
    tables->owner = row->extowner;
  }
  systable_endscan(scan);
  table_close(extensions, AccessShareLock);
}

}  // namespace

ExtensionTables find_extension_tables() {
  ExtensionTables tables = {};
  find_extension_row(&tables);
  if (!OidIsValid(tables.extension)) return tables;
  Relation depend = table_open(DependRelationId, AccessShareLock);
  ScanKeyData key[2];
  ScanKeyInit(&key[0], Anum_pg_depend_refclassid, BTEqualStrategyNumber, F_OIDEQ,
              ObjectIdGetDatum(ExtensionRelationId));
  ScanKeyInit(&key[1], Anum_pg_depend_refobjid, BTEqualStrategyNumber, F_OIDEQ,
              ObjectIdGetDatum(tables.extension));
  SysScanDesc scan = systable_beginscan(depend, DependReferenceIndexId, true, nullptr, 2, key);
  while (HeapTuple tuple = systable_getnext(scan)) {
    auto* row = reinterpret_cast<Form_pg_depend>(GETSTRUCT(tuple));
    bool is_table =
        row->classid == RelationRelationId && get_rel_relkind(row->objid) == RELKIND_RELATION;
    if (is_table && tables.count < kMaxTables) tables.table[tables.count++] = row->objid;
  }
  systable_endscan(scan);
  table_close(depend, AccessShareLock);
  return tables;
}

}  // namespace pulse
