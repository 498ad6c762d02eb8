// CALL pulse.wait_for_end(job_ids, max_wait, any_of, ended): see sql/job/results.sql for the
// contract.
#include "server/postgres.hpp"

#include "access/catalog.hpp"
#include "access/extension_tables.hpp"
#include "access/index_lookup.hpp"
#include "server/clocks.hpp"
#include "server/errors.hpp"
#include "server/values.hpp"
#include "shared/memory.hpp"
#include "wake/end_waiters.hpp"
#include "wake/session_wait.hpp"

extern "C" {
#include "access/twophase.h"
}

namespace pulse {
namespace {

// The jobs of a call: the first `open` ids have not ended as far as this session has seen.
struct AwaitedJobs {
  int64* ids;
  int count;
  int open;
  bool any_of;
  bool is_undecided;  // a transaction in progress adds one of the jobs

  bool is_met() const { return any_of && count > 0 ? open < count : open == 0; }
};

void swap_ids(AwaitedJobs* jobs, int a, int b) {
  int64 id = jobs->ids[a];
  jobs->ids[a] = jobs->ids[b];
  jobs->ids[b] = id;
}

// Moves open jobs without a row behind the other open jobs. Rows of other transactions in progress
// count: a job that a transaction adds has not ended, and a job that a transaction deletes may
// stay.
void sort_out_ended(AwaitedJobs* jobs, IndexLookup* rows, const SnapshotData& dirty, bool all) {
  jobs->is_undecided = false;
  for (int i = jobs->open - 1; i >= 0; i--) {
    CHECK_FOR_INTERRUPTS();
    if (!find_id(rows, jobs->ids[i])) {
      swap_ids(jobs, i, --jobs->open);
      continue;
    }
    jobs->is_undecided |= TransactionIdIsValid(dirty.xmin);
    if (!all) return;
  }
}

// A scan with uncommitted rows can miss a row that moves meanwhile, and retry_job makes a job live
// again. So a scan under a snapshot has the last word.
void take_back_live(AwaitedJobs* jobs, Relation table) {
  Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
  IndexLookup rows;
  open_index_lookup(&rows, table, catalog()->job_key, snapshot);
  for (int i = jobs->open; i < jobs->count; i++) {
    CHECK_FOR_INTERRUPTS();
    if (find_id(&rows, jobs->ids[i])) swap_ids(jobs, i, jobs->open++);
  }
  close_index_lookup(&rows);
  UnregisterSnapshot(snapshot);
}

// Reads which jobs have ended. A waiter for all jobs reads a single open job at a time, until no
// job is open; with `all` it reads every job.
void check_jobs(AwaitedJobs* jobs, bool all) {
  // If the extension has been dropped, catalog() raises an error that says so.
  Relation table = try_relation_open(catalog()->job, AccessShareLock);
  if (!table) table = table_open(catalog()->job, AccessShareLock);
  SnapshotData dirty;
  InitDirtySnapshot(dirty);
  IndexLookup rows;
  open_index_lookup(&rows, table, catalog()->job_key, &dirty);
  sort_out_ended(jobs, &rows, dirty, all);
  // The lookup still holds the lock of the table: waiting for a lock again could take the wake-up
  // of an end.
  if (all || jobs->open == 0) take_back_live(jobs, table);
  close_index_lookup(&rows);
  table_close(table, AccessShareLock);
}

bool await(const AwaitedJobs& jobs) {
  return jobs.any_of ? await_ends(jobs.ids, jobs.open)
                     : await_ends(&jobs.ids[jobs.open - 1], Min(jobs.open, 1));
}

// Commits send no wake-up for COMMIT PREPARED, nor for the end of an add that is undone.
bool must_poll(const AwaitedJobs& jobs, bool is_entered) {
  return !is_entered || jobs.is_undecided || max_prepared_xacts > 0;
}

void wait_for_ends(AwaitedJobs* jobs, int64 wait_us) {
  int64 end = monotonic_us() + wait_us;
  bool is_entered = enter_end_waiting();
  (void)await(*jobs);
  for (;;) {
    int64 left_us = end - monotonic_us();
    check_jobs(jobs, jobs->any_of || left_us <= 0);
    if (jobs->is_met() || left_us <= 0) break;
    if (await(*jobs)) continue;
    drop_snapshot();
    sleep_for(must_poll(*jobs, is_entered) ? Min(left_us, poll_interval_us()) : left_us);
  }
  leave_end_waiting();
}

// pulse_internal.awaited_ids(job_ids), with the rights of the extension's owner. An error resets
// the user.
ArrayType* awaited_ids(Datum job_ids) {
  Oid types[] = {INT8ARRAYOID};
  Oid user;
  int context;
  GetUserIdAndSecContext(&user, &context);
  SetUserIdAndSecContext(find_extension_tables().owner,
                         context | SECURITY_LOCAL_USERID_CHANGE | SECURITY_RESTRICTED_OPERATION);
  Datum ids = OidFunctionCall1(internal_function("awaited_ids", lengthof(types), types), job_ids);
  SetUserIdAndSecContext(user, context);
  return DatumGetArrayTypeP(ids);
}

// Copies the ids, without duplicates, to memory that outlives transactions.
AwaitedJobs read_jobs(FunctionCallInfo fcinfo) {
  ArrayType* array = awaited_ids(PG_GETARG_DATUM(0));
  int count = ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array));
  auto* ids = static_cast<int64*>(MemoryContextAlloc(PortalContext, sizeof(int64) * (count + 1)));
  memcpy(ids, ARR_DATA_PTR(array), sizeof(int64) * count);
  return {ids, count, count, PG_GETARG_BOOL(2), false};
}

}  // namespace
}  // namespace pulse

PULSE_FUNCTION(pulse_wait_for_end) {
  pulse::require_no_transaction_block(fcinfo, "wait_for_end");
  PreventCommandDuringRecovery("wait_for_end");
  if (PG_ARGISNULL(0) || PG_ARGISNULL(1) || PG_ARGISNULL(2))
    ereport(ERROR,
            (errcode(pulse::kOutOfRange), errmsg("job_ids, max_wait and any_of must not be null"),
             errhint("Use the ids that add_job() or add_jobs() returned.")));
  int64 wait_us = pulse::checked_max_wait_us(PG_GETARG_INTERVAL_P(1));
  pulse::AwaitedJobs jobs = pulse::read_jobs(fcinfo);
  pulse::drop_snapshot();
  pulse::wait_for_ends(&jobs, wait_us);
  PG_RETURN_DATUM(pulse::result_row(fcinfo, {pulse::given(Int32GetDatum(jobs.count - jobs.open))}));
}
