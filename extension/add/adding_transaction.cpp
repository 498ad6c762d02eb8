// Adding: the transaction in progress that has added a job. A function that adds jobs after other
// jobs, or by a key, asks for this transaction.
#include "access/catalog.hpp"
#include "access/columns.hpp"
#include "access/index_lookup.hpp"
#include "server/postgres.hpp"
#include "server/values.hpp"

namespace pulse {
namespace {

// Calls use(row) with the row of a job that another transaction in progress adds, if any.
template <typename Use>
void with_uncommitted(int64 job_id, Use use) {
  Relation table = table_open(catalog()->job, AccessShareLock);
  SnapshotData dirty;
  InitDirtySnapshot(dirty);
  IndexLookup rows;
  open_index_lookup(&rows, table, catalog()->job_key, &dirty);
  if (find_id(&rows, job_id) && TransactionIdIsValid(dirty.xmin)) use(rows.row);
  close_index_lookup(&rows);
  table_close(table, AccessShareLock);
}

}  // namespace
}  // namespace pulse

// pulse_internal.is_being_added(job_id): whether another transaction in progress adds the job.
PULSE_FUNCTION(pulse_is_being_added) {
  bool is_added = false;
  pulse::with_uncommitted(PG_GETARG_INT64(0), [&](TupleTableSlot*) { is_added = true; });
  PG_RETURN_BOOL(is_added);
}

// pulse_internal.producer_of_uncommitted(job_id): the producer of a job that another transaction in
// progress adds; NULL: none.
PULSE_FUNCTION(pulse_producer_of_uncommitted) {
  NullableDatum producer = pulse::kNull;
  pulse::with_uncommitted(PG_GETARG_INT64(0), [&](TupleTableSlot* job) {
    bool isnull;
    Datum added_by = slot_getattr(job, pulse::kJobAddedBy, &isnull);
    if (!isnull) producer = pulse::given(PointerGetDatum(DatumGetTextPCopy(added_by)));
  });
  if (producer.isnull) PG_RETURN_NULL();
  PG_RETURN_DATUM(producer.value);
}

// pulse_internal.is_own_transaction(adder)
PULSE_FUNCTION(pulse_is_own_transaction) {
  PG_RETURN_BOOL(TransactionIdIsCurrentTransactionId(PG_GETARG_TRANSACTIONID(0)));
}
