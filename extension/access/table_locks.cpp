#include "access/table_locks.hpp"

#include "server/values.hpp"

extern "C" {
#include "catalog/pg_namespace.h"
}

namespace pulse {
namespace {

struct TriedLocks {
  LOCKMODE mode;
  List* relations;
};

bool try_lock_relation(TriedLocks* locks, Oid relation) {
  if (!ConditionalLockRelationOid(relation, locks->mode)) return false;
  locks->relations = lappend_oid(locks->relations, relation);
  return true;
}

bool try_lock_parts(TriedLocks* locks, Oid table) {
  if (!try_lock_relation(locks, table)) return false;
  if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(table))) return false;
  Relation opened = table_open(table, NoLock);
  List* indexes = RelationGetIndexList(opened);
  Oid long_values = opened->rd_rel->reltoastrelid;
  table_close(opened, NoLock);
  ListCell* cell;
  foreach (cell, indexes)
    if (!try_lock_relation(locks, lfirst_oid(cell))) return false;
  return !OidIsValid(long_values) || try_lock_parts(locks, long_values);
}

void give_back(const TriedLocks& locks) {
  ListCell* cell;
  foreach (cell, locks.relations) UnlockRelationOid(lfirst_oid(cell), locks.mode);
}

// Returns the first of the named tables that cannot be locked; null: the session has all locks.
text* try_lock_named(TriedLocks* locks, ArrayType* names) {
  Oid schema = get_namespace_oid("pulse", false);
  Datum* elements;
  int count;
  deconstruct_array(names, TEXTOID, -1, false, TYPALIGN_INT, &elements, nullptr, &count);
  for (int i = 0; i < count; i++) {
    Oid table = get_relname_relid(TextDatumGetCString(elements[i]), schema);
    if (!OidIsValid(table) || !try_lock_parts(locks, table)) return DatumGetTextPP(elements[i]);
  }
  return nullptr;
}

}  // namespace

bool try_lock_table(Oid table, LOCKMODE mode) {
  TriedLocks locks = {mode, NIL};
  if (OidIsValid(table) && try_lock_parts(&locks, table)) return true;
  give_back(locks);
  return false;
}

}  // namespace pulse

// pulse_internal.try_lock_tables(written, read)
PULSE_FUNCTION(pulse_try_lock_tables) {
  using namespace pulse;
  TriedLocks written = {RowExclusiveLock, NIL};
  TriedLocks read = {AccessShareLock, NIL};
  text* locked = try_lock_named(&written, PG_GETARG_ARRAYTYPE_P(0));
  if (!locked) locked = try_lock_named(&read, PG_GETARG_ARRAYTYPE_P(1));
  if (!locked) PG_RETURN_NULL();
  give_back(read);
  give_back(written);
  PG_RETURN_TEXT_P(locked);
}

// pulse_internal.hold_schema(name): while a session holds locks of tables, another session could
// rename their schema and make another of the same name. The lock of the schema's row lasts until
// the transaction ends; grants go on.
PULSE_FUNCTION(pulse_hold_schema) {
  char* name = text_to_cstring(PG_GETARG_TEXT_PP(0));
  Relation schemas = table_open(NamespaceRelationId, RowShareLock);
  HeapTuple row = SearchSysCacheCopy1(NAMESPACENAME, CStringGetDatum(name));
  TM_Result result = TM_Ok;
  if (HeapTupleIsValid(row)) {
    Buffer buffer;
    TM_FailureData failure;
    result = heap_lock_tuple(schemas, row, GetCurrentCommandId(true), LockTupleKeyShare,
                             LockWaitBlock, false, &buffer, &failure);
    ReleaseBuffer(buffer);
  }
  table_close(schemas, NoLock);
  if (result != TM_Ok)
    ereport(ERROR, (errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
                    errmsg("schema %s has just been changed", quote_identifier(name)),
                    errhint("Call again.")));
  PG_RETURN_BOOL(HeapTupleIsValid(row));
}
