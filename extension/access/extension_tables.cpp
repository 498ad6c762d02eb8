#include "access/extension_tables.hpp"

#include "server/clocks.hpp"
#include "server/settings.hpp"

namespace pulse {
namespace {

constexpr int kMaxPatienceMs = 100;
constexpr long kPauseMs = 100;

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

// The lock order of the most frequent transactions: a heartbeat or a claim locks pulse.heartbeat
// before pulse.job. In the opposite order, busy workers and DROP EXTENSION would block each other
// repeatedly.
int rank_of(Oid table) {
  const char* name = get_rel_name(table);
  if (!name) return 2;
  return strcmp(name, "heartbeat") == 0 ? 0 : strcmp(name, "job") == 0 ? 1 : 2;
}

void add_table(ExtensionTables* tables, Oid table) {
  if (tables->count == kMaxTables || get_rel_relkind(table) != RELKIND_RELATION) return;
  int position = tables->count++;
  for (; position > 0 && rank_of(table) < rank_of(tables->table[position - 1]); position--)
    tables->table[position] = tables->table[position - 1];
  tables->table[position] = table;
}

void set_lock_timeout(int ms) {
  char value[16];
  snprintf(value, sizeof(value), "%d", ms);
  // The value lasts until the GUC nest level ends.
  (void)set_config_option("lock_timeout", value, PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true,
                          0, false);
}

// True when every table is locked; otherwise the subtransaction's rollback has released all of
// them.
bool try_lock_exclusively(const ExtensionTables* tables) {
  MemoryContext context = CurrentMemoryContext;
  ResourceOwner resources = CurrentResourceOwner;
  volatile bool is_locked = true;
  BeginInternalSubTransaction(nullptr);
  MemoryContextSwitchTo(context);
  PG_TRY();
  {
    for (int i = 0; i < tables->count; i++) LockRelationOid(tables->table[i], AccessExclusiveLock);
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

// Swaps the first two tables, so that the next attempt suits a transaction that locks them in the
// other order.
void swap_first_two(ExtensionTables* tables) {
  if (tables->count < 2) return;
  Oid first = tables->table[0];
  tables->table[0] = tables->table[1];
  tables->table[1] = first;
}

void pause_between_attempts() {
  (void)WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, kPauseMs,
                  PG_WAIT_EXTENSION);
  ResetLatch(MyLatch);
  CHECK_FOR_INTERRUPTS();
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
    if (row->classid == RelationRelationId) add_table(&tables, row->objid);
  }
  systable_endscan(scan);
  table_close(depend, AccessShareLock);
  return tables;
}

void lock_extension_tables(ExtensionTables* tables) {
  int limit_ms = LockTimeout;
  int64 end = monotonic_us() + limit_ms * INT64CONST(1000);
  int patience_ms = Max(1, Min(kMaxPatienceMs, DeadlockTimeout / 2));
  for (;;) {
    bool is_last = limit_ms > 0 && monotonic_us() >= end;
    int nest = NewGUCNestLevel();
    set_lock_timeout(is_last ? 1 : patience_ms);
    bool is_locked = try_lock_exclusively(tables);
    AtEOXact_GUC(true, nest);
    if (is_locked) return;
    if (is_last)
      ereport(ERROR,
              (errcode(ERRCODE_LOCK_NOT_AVAILABLE), errmsg("the tables of pg_pulse are in use"),
               errhint("Try again, or raise lock_timeout.")));
    pause_between_attempts();
    swap_first_two(tables);
  }
}

}  // namespace pulse
