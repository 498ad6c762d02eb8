#include "access/extension_tables.hpp"

#include "server/clocks.hpp"
#include "server/settings.hpp"

namespace pulse {
namespace {

constexpr int kMaxPatienceMs = 100;
constexpr long kPauseMs = 100;

void find_extension_row(ExtensionTables* own) {
  Relation extensions = table_open(ExtensionRelationId, AccessShareLock);
  ScanKeyData key;
  ScanKeyInit(&key, Anum_pg_extension_extname, BTEqualStrategyNumber, F_NAMEEQ,
              CStringGetDatum("pg_pulse"));
  SysScanDesc scan = systable_beginscan(extensions, ExtensionNameIndexId, true, nullptr, 1, &key);
  HeapTuple tuple = systable_getnext(scan);
  if (HeapTupleIsValid(tuple)) {
    auto* row = reinterpret_cast<Form_pg_extension>(GETSTRUCT(tuple));
    own->extension = row->oid;
    own->owner = row->extowner;
  }
  systable_endscan(scan);
  table_close(extensions, AccessShareLock);
}

// The order in which the most frequent transactions take them: a beat or a claim has its heartbeat
// when it comes to the jobs, and whoever begins with the jobs needs no heartbeat. In another order
// busy workers and whoever locks all tables would stand in each other's way again and again.
int rank_of(Oid table) {
  const char* name = get_rel_name(table);
  if (!name) return 2;
  return strcmp(name, "heartbeat") == 0 ? 0 : strcmp(name, "job") == 0 ? 1 : 2;
}

void add_table(ExtensionTables* own, Oid table) {
  if (own->count == kMaxTables || get_rel_relkind(table) != RELKIND_RELATION) return;
  int position = own->count++;
  for (; position > 0 && rank_of(table) < rank_of(own->table[position - 1]); position--)
    own->table[position] = own->table[position - 1];
  own->table[position] = table;
}

void set_lock_timeout(int ms) {
  char value[16];
  snprintf(value, sizeof(value), "%d", ms);
  // Until the nest level ends.
  (void)set_config_option("lock_timeout", value, PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true,
                          0, false);
}

// True when all are locked; whatever was locked is free again otherwise.
bool try_lock_exclusively(const ExtensionTables* own) {
  MemoryContext context = CurrentMemoryContext;
  ResourceOwner resources = CurrentResourceOwner;
  volatile bool is_locked = true;
  BeginInternalSubTransaction(nullptr);
  MemoryContextSwitchTo(context);
  PG_TRY();
  {
    for (int i = 0; i < own->count; i++) LockRelationOid(own->table[i], AccessExclusiveLock);
    ReleaseCurrentSubTransaction();
  }
  PG_CATCH();
  {
    MemoryContextSwitchTo(context);
    ErrorData* error = CopyErrorData();
    if (error->sqlerrcode != ERRCODE_LOCK_NOT_AVAILABLE) PG_RE_THROW();
    FlushErrorState();
    RollbackAndReleaseCurrentSubTransaction();
    is_locked = false;
  }
  PG_END_TRY();
  MemoryContextSwitchTo(context);
  CurrentResourceOwner = resources;
  return is_locked;
}

// Whoever uses the first two in the other order in one transaction is let through the next time.
void take_turns(ExtensionTables* own) {
  if (own->count < 2) return;
  Oid first = own->table[0];
  own->table[0] = own->table[1];
  own->table[1] = first;
}

void pause_for_others() {
  (void)WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, kPauseMs,
                  PG_WAIT_EXTENSION);
  ResetLatch(MyLatch);
  CHECK_FOR_INTERRUPTS();
}

}  // namespace

ExtensionTables find_extension_tables() {
  ExtensionTables own = {};
  find_extension_row(&own);
  if (!OidIsValid(own.extension)) return own;
  Relation depend = table_open(DependRelationId, AccessShareLock);
  ScanKeyData key[2];
  ScanKeyInit(&key[0], Anum_pg_depend_refclassid, BTEqualStrategyNumber, F_OIDEQ,
              ObjectIdGetDatum(ExtensionRelationId));
  ScanKeyInit(&key[1], Anum_pg_depend_refobjid, BTEqualStrategyNumber, F_OIDEQ,
              ObjectIdGetDatum(own.extension));
  SysScanDesc scan = systable_beginscan(depend, DependReferenceIndexId, true, nullptr, 2, key);
  while (HeapTuple tuple = systable_getnext(scan)) {
    auto* row = reinterpret_cast<Form_pg_depend>(GETSTRUCT(tuple));
    if (row->classid == RelationRelationId) add_table(&own, row->objid);
  }
  systable_endscan(scan);
  table_close(depend, AccessShareLock);
  return own;
}

void lock_extension_tables(ExtensionTables* own) {
  int limit_ms = LockTimeout;
  int64 end = monotonic_us() + limit_ms * INT64CONST(1000);
  int patience_ms = Max(1, Min(kMaxPatienceMs, DeadlockTimeout / 2));
  for (;;) {
    bool is_last = limit_ms > 0 && monotonic_us() >= end;
    int nest = NewGUCNestLevel();
    set_lock_timeout(is_last ? 1 : patience_ms);
    bool is_locked = try_lock_exclusively(own);
    AtEOXact_GUC(true, nest);
    if (is_locked) return;
    if (is_last)
      ereport(ERROR,
              (errcode(ERRCODE_LOCK_NOT_AVAILABLE), errmsg("the tables of pg_pulse are in use"),
               errhint("Try again, or raise lock_timeout.")));
    pause_for_others();
    take_turns(own);
  }
}

}  // namespace pulse
