#include "handler/session_state.hpp"

#include "access/local_settings.hpp"
#include "access/saved_plan.hpp"
#include "server/advisory_lock.hpp"
#include "server/compat.hpp"

extern "C" {
#include "commands/async.h"
#include "commands/prepare.h"
#include "utils/portal.h"
}

namespace pulse {
namespace {

ProcessUtility_hook_type next_hook = nullptr;

// All lists are in TopTransactionContext, which outlives the callbacks of the transaction's end.
struct JobState {
  bool is_noted;
  SubTransactionId savepoint;  // in which the job began
  bool is_in_block;  // of the client, which may ask for its own sequence numbers after the job
  bool had_temporary_objects;
  List* locks;       // HeldLock, from before the job
  List* statements;  // names, as in the next two
  List* channels;
  List* cursors;
};

JobState job;

bool has_temporary_objects() {
  Oid schema, toast_schema;
  GetTempNamespaceState(&schema, &toast_schema);
  if (!OidIsValid(schema)) return false;
  CommandCounterIncrement();
  Relation depend = table_open(DependRelationId, AccessShareLock);
  ScanKeyData keys[2];
  ScanKeyInit(&keys[0], Anum_pg_depend_refclassid, BTEqualStrategyNumber, F_OIDEQ,
              ObjectIdGetDatum(NamespaceRelationId));
  ScanKeyInit(&keys[1], Anum_pg_depend_refobjid, BTEqualStrategyNumber, F_OIDEQ,
              ObjectIdGetDatum(schema));
  SysScanDesc scan =
      systable_beginscan(depend, DependReferenceIndexId, true, nullptr, lengthof(keys), keys);
  bool found = HeapTupleIsValid(systable_getnext(scan));
  systable_endscan(scan);
  table_close(depend, AccessShareLock);
  return found;
}

// A LISTEN counts from the commit on.
bool is_listening(const char* channel) {
  static SavedPlan query = {
      "SELECT EXISTS (SELECT FROM pg_catalog.pg_listening_channels() AS c (name)"
      " WHERE c.name OPERATOR(pg_catalog.=) $1)",
      1,
      {TEXTOID},
      nullptr};
  NullableDatum arguments[] = {{CStringGetTextDatum(channel), false}};
  return DatumGetBool(value_of_query(&query, arguments).value);
}

List* with_name(List* names, const char* name) {
  MemoryContext old = MemoryContextSwitchTo(TopTransactionContext);
  names = lappend(names, pstrdup(name));
  MemoryContextSwitchTo(old);
  return names;
}

void note_statement(const Node* statement) {
  if (IsA(statement, PrepareStmt)) {
    job.statements =
        with_name(job.statements, reinterpret_cast<const PrepareStmt*>(statement)->name);
  } else if (IsA(statement, ListenStmt)) {
    const char* channel = reinterpret_cast<const ListenStmt*>(statement)->conditionname;
    if (!is_listening(channel)) job.channels = with_name(job.channels, channel);
  } else if (IsA(statement, DeclareCursorStmt)) {
    auto* cursor = reinterpret_cast<const DeclareCursorStmt*>(statement);
    if (cursor->options & CURSOR_OPT_HOLD) job.cursors = with_name(job.cursors, cursor->portalname);
  }
}

extern "C" void pulse_process_utility(PlannedStmt* statement, const char* text, bool is_shared,
                                      ProcessUtilityContext context, ParamListInfo parameters,
                                      QueryEnvironment* environment, DestReceiver* destination,
                                      QueryCompletion* completion) {
  auto* next = next_hook ? next_hook : standard_ProcessUtility;
  next(statement, text, is_shared, context, parameters, environment, destination, completion);
  if (job.is_noted) note_statement(statement->utilityStmt);
}

void close_held_cursors() {
  ListCell* cell;
  foreach (cell, job.cursors) {
    Portal portal = GetPortalByName(static_cast<const char*>(lfirst(cell)));
    if (PortalIsValid(portal) && portal->status != PORTAL_ACTIVE && !portal->portalPinned)
      PortalDrop(portal, false);
  }
}

bool was_held(const HeldLock& lock, LOCKMODE mode) {
  ListCell* cell;
  foreach (cell, job.locks) {
    auto* before = static_cast<const HeldLock*>(lfirst(cell));
    if (memcmp(&before->tag, &lock.tag, sizeof(LOCKTAG)) == 0)
      return (before->modes & LOCKBIT_ON(mode)) != 0;
  }
  return false;
}

// Releases the session locks that the job took. LockRelease() shows whether the session holds a
// lock, and not only the transaction: for a lock that the session does not hold, the server warns.
void release_new_locks() {
  int level = NewGUCNestLevel();
  constexpr const char* kMessages[] = {"client_min_messages", "log_min_messages"};
  for (const char* name : kMessages)
    (void)set_config_option(name, "error", PGC_SUSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0,
                            false);
  ListCell* cell;
  foreach (cell, held_advisory_locks()) {
    auto* lock = static_cast<const HeldLock*>(lfirst(cell));
    for (LOCKMODE mode = AccessShareLock; mode <= AccessExclusiveLock; mode++)
      if ((lock->modes & LOCKBIT_ON(mode)) && !was_held(*lock, mode))
        while (LockRelease(&lock->tag, mode, true)) continue;
  }
  AtEOXact_GUC(true, level);
}

void release_locks() {
  if (job.locks == NIL)
    LockReleaseSession(USER_LOCKMETHOD);
  else
    release_new_locks();
}

void drop_statements() {
  ListCell* cell;
  foreach (cell, job.statements)
    DropPreparedStatement(static_cast<const char*>(lfirst(cell)), false);
}

}  // namespace

void watch_session_state() {
  next_hook = ProcessUtility_hook;
  ProcessUtility_hook = pulse_process_utility;
}

bool begin_session_state() {
  if (job.is_noted) return false;
  job = {};
  job.savepoint = GetCurrentSubTransactionId();
  job.is_in_block = IsTransactionBlock();
  job.had_temporary_objects = has_temporary_objects();
  MemoryContext old = MemoryContextSwitchTo(TopTransactionContext);
  job.locks = held_advisory_locks();
  MemoryContextSwitchTo(old);
  job.is_noted = true;
  return true;
}

void end_session_state() {
  close_held_cursors();
  drop_statements();
  ListCell* cell;
  foreach (cell, job.channels) Async_Unlisten(static_cast<const char*>(lfirst(cell)));
  if (!job.had_temporary_objects && has_temporary_objects()) ResetTempTableNamespace();
  release_locks();
  if (!job.is_in_block) ResetSequenceCaches();
  job = {};
}

void abort_session_state(SubTransactionId undone) {
  if (!job.is_noted || (undone != job.savepoint && undone != TopSubTransactionId)) return;
  drop_statements();
  // Where the session had locks before the job, it keeps the job's locks: here no code may warn.
  if (job.locks == NIL) LockReleaseSession(USER_LOCKMETHOD);
  if (!job.is_in_block) ResetSequenceCaches();
  job = {};
}

void forget_session_state() { job = {}; }

}  // namespace pulse
