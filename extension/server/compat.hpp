// Differences between PostgreSQL's major versions, and between minor versions. No other file tests
// PG_VERSION_NUM. Each function behaves as in the newest version. A library built on any minor
// version loads in each minor version of the same major version. So no function needs code that
// came after the first minor version: see test/symbols.
#pragma once

#include "server/postgres.hpp"

extern "C" {
#include "catalog/pg_namespace.h"
#include "catalog/pg_proc.h"
}

#if PG_VERSION_NUM < 150000
using shmem_request_hook_type = void (*)();
#endif

namespace pulse {

inline void reserve_settings(const char* prefix) {
#if PG_VERSION_NUM >= 150000
  MarkGUCPrefixReserved(prefix);
#else
  EmitWarningsOnPlaceholders(prefix);
#endif
}

// Installs the hook and returns the previous hook. PostgreSQL 14 requests shared memory at once.
inline shmem_request_hook_type replace_shmem_request_hook(shmem_request_hook_type request) {
#if PG_VERSION_NUM >= 150000
  shmem_request_hook_type previous = shmem_request_hook;
  shmem_request_hook = request;
  return previous;
#else
  request();
  return nullptr;
#endif
}

// The number before the slash in pg_locks.virtualtransaction.
inline int number_in_lists(VirtualTransactionId transaction) {
#if PG_VERSION_NUM >= 170000
  return transaction.procNumber;
#else
  return transaction.backendId;
#endif
}

inline int own_proc_number() {
#if PG_VERSION_NUM >= 170000
  return MyProcNumber;
#else
  return MyProc->pgprocno;
#endif
}

// The version of the headers, in the form of server_version_num.
inline constexpr int kServerVersionBuiltFor = PG_VERSION_NUM;

// Allows DROP DATABASE and CREATE DATABASE ... TEMPLATE to terminate the process; servers before 19
// lack the flag.
#ifdef BGWORKER_INTERRUPTIBLE
constexpr int kInterruptibleProcess = BGWORKER_INTERRUPTIBLE;
#else
constexpr int kInterruptibleProcess = 0;
#endif

// The wait event for a closed client socket. Servers before 15 notice a closed socket only by
// client_connection_check_interval.
#if PG_VERSION_NUM >= 150000
constexpr uint32 kSocketClosed = WL_SOCKET_CLOSED;
#else
constexpr uint32 kSocketClosed = 0;
#endif

// Whether this process holds the lock in this mode or in a stronger mode.
inline bool holds_lock(const LOCKTAG* tag, LOCKMODE mode) {
#if PG_VERSION_NUM >= 170000
  return LockHeldByMe(tag, mode, true);
#else
  while (mode <= AccessExclusiveLock && !LockHeldByMe(tag, mode)) mode++;
  return mode <= AccessExclusiveLock;
#endif
}

inline bool may_use_schema(Oid role, Oid schema) {
#if PG_VERSION_NUM >= 160000
  return object_aclcheck(NamespaceRelationId, schema, role, ACL_USAGE) == ACLCHECK_OK;
#else
  return pg_namespace_aclcheck(schema, role, ACL_USAGE) == ACLCHECK_OK;
#endif
}

// Calls visit(PROCLOCK*) for each lock of this process in a partition of the lock table. Locks on
// the server's fast path are not in the lock table.
template <typename Visit>
void visit_own_locks(int partition, Visit visit) {
  auto* locks = &MyProc->myProcLocks[partition];
#if PG_VERSION_NUM >= 160000
  if (dlist_is_empty(locks)) return;
#else
  if (SHMQueueEmpty(locks)) return;
#endif
  LWLockAcquire(LockHashPartitionLockByIndex(partition), LW_SHARED);
#if PG_VERSION_NUM >= 160000
  // dlist_foreach() does not compile as C++ everywhere.
  for (dlist_node* at = locks->head.next; at != &locks->head; at = at->next)
    visit(reinterpret_cast<PROCLOCK*>(reinterpret_cast<char*>(at) - offsetof(PROCLOCK, procLink)));
#else
  auto next = [locks](const SHM_QUEUE* at) {
    return static_cast<PROCLOCK*>(
        static_cast<void*>(SHMQueueNext(locks, at, offsetof(PROCLOCK, procLink))));
  };
  for (PROCLOCK* lock = next(locks); lock; lock = next(&lock->procLink)) visit(lock);
#endif
  LWLockRelease(LockHashPartitionLockByIndex(partition));
}

// The timeline that this server writes to; must not be called in recovery.
inline TimeLineID insertion_timeline() {
#if PG_VERSION_NUM >= 150000
  return GetWALInsertionTimeLine();
#else
  // RecoveryInProgress() has set ThisTimeLineID.
  return ThisTimeLineID;
#endif
}

inline IndexScanDesc begin_index_scan(Relation table, Relation index, Snapshot snapshot, int keys) {
#if PG_VERSION_NUM >= 180000
  return index_beginscan(table, index, snapshot, nullptr, keys, 0);
#else
  return index_beginscan(table, index, snapshot, keys, 0);
#endif
}

#if PG_VERSION_NUM >= 160000
using IndexesToFollow = TU_UpdateIndexes;
constexpr IndexesToFollow kNoIndexes = TU_None;
#else
using IndexesToFollow = bool;
constexpr IndexesToFollow kNoIndexes = false;
#endif

// Inserts the index entries of an update that was not HOT.
inline void update_indexes(ResultRelInfo* result, EState* estate, TupleTableSlot* changed,
                           [[maybe_unused]] IndexesToFollow indexes) {
  if (result->ri_NumIndices == 0) return;
#if PG_VERSION_NUM >= 160000
  ExecInsertIndexTuples(result, changed, estate, true, false, nullptr, NIL,
                        indexes == TU_Summarizing);
#else
  ExecInsertIndexTuples(result, changed, estate, true, false, nullptr, NIL);
#endif
}

// Prepares the tuplestore in ReturnSetInfo that a set-returning function fills. Every executor
// accepts a tuplestore from a function that returns a set of rows.
inline void begin_result_rows(FunctionCallInfo fcinfo) {
#if PG_VERSION_NUM >= 160000
  InitMaterializedSRF(fcinfo, 0);
#elif PG_VERSION_NUM >= 150000
  SetSingleFuncCall(fcinfo, 0);  // the name in 15.0; later minor versions know both names
#else
  auto* results = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
  MemoryContext context = MemoryContextSwitchTo(results->econtext->ecxt_per_query_memory);
  bool random = (results->allowedModes & SFRM_Materialize_Random) != 0;
  results->returnMode = SFRM_Materialize;
  results->setResult = tuplestore_begin_heap(random, false, work_mem);
  (void)get_call_result_type(fcinfo, nullptr, &results->setDesc);
  MemoryContextSwitchTo(context);
#endif
}

// Newer minor versions flag a composite value, whose type may have changed since the value's
// creation, and check the flag when reading fields. The library asks the running server whether it
// flags values: a server that does not flag values lacks this function.
extern "C" HeapTupleHeader marked_header(Datum row) __asm__("DatumGetHeapTupleHeader")
    __attribute__((weak));

inline HeapTupleHeader header_of(Datum row) {
  if (marked_header != nullptr) return marked_header(row);
  return reinterpret_cast<HeapTupleHeader>(PG_DETOAST_DATUM(row));
}

// A field of a row of the catalogue, for a column that all versions have. heap_getattr() checks
// more, by a function that the first minor versions lack.
inline Datum catalogue_field(HeapTuple row, int column, Relation catalogue, bool* isnull) {
  return fastgetattr(row, column, RelationGetDescr(catalogue), isnull);
}

inline bool may_execute(Oid function, Oid role) {
#if PG_VERSION_NUM >= 160000
  return object_aclcheck(ProcedureRelationId, function, role, ACL_EXECUTE) == ACLCHECK_OK;
#else
  return pg_proc_aclcheck(function, role, ACL_EXECUTE) == ACLCHECK_OK;
#endif
}

}  // namespace pulse
