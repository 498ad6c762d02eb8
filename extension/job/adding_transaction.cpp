// Which transaction has added a job: one that adds jobs after others, or by a key, asks.
#include "access/catalog.hpp"
#include "access/index_lookup.hpp"
#include "server/postgres.hpp"

// pulse_internal.is_being_added(job_id): whether another transaction in progress adds it.
PULSE_FUNCTION(pulse_is_being_added) {
  Relation table = table_open(pulse::catalog()->job, AccessShareLock);
  SnapshotData dirty;
  InitDirtySnapshot(dirty);
  pulse::IndexLookup rows;
  pulse::open_index_lookup(&rows, table, pulse::catalog()->job_key, &dirty);
  bool is_found = pulse::find_id(&rows, PG_GETARG_INT64(0));
  pulse::close_index_lookup(&rows);
  table_close(table, AccessShareLock);
  PG_RETURN_BOOL(is_found && TransactionIdIsValid(dirty.xmin));
}

// pulse_internal.is_own_transaction(added_by)
PULSE_FUNCTION(pulse_is_own_transaction) {
  PG_RETURN_BOOL(TransactionIdIsCurrentTransactionId(PG_GETARG_TRANSACTIONID(0)));
}
