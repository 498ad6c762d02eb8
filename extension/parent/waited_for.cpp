// Parents: whether a job waits for a given parent. A transaction that takes the end of a parent
// away asks. The lookups are dirty, so two further kinds of jobs count as waiting. Another
// transaction has made the job wait and has not committed, or has committed after the caller's
// snapshot.
#include "access/catalog.hpp"
#include "access/columns.hpp"
#include "access/index_lookup.hpp"
#include "parent/neighbours.hpp"
#include "server/postgres.hpp"
#include "server/values.hpp"

namespace pulse {
namespace {

struct DirtyLookup {
  SnapshotData snapshot;
  Relation table;
  IndexLookup rows;
};

void open_dirty_lookup(DirtyLookup* lookup, Oid table, Oid index) {
  InitDirtySnapshot(lookup->snapshot);
  lookup->table = table_open(table, AccessShareLock);
  open_index_lookup(&lookup->rows, lookup->table, index, &lookup->snapshot);
}

void close_dirty_lookup(DirtyLookup* lookup) {
  close_index_lookup(&lookup->rows);
  table_close(lookup->table, AccessShareLock);
}

bool has_id(Datum ids, int64 id) {
  ArrayType* array = DatumGetArrayTypeP(ids);
  auto* first = reinterpret_cast<int64*>(ARR_DATA_PTR(array));
  auto* end = first + ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array));
  while (first < end && *first != id) first++;
  bool is_found = first < end;
  if (PointerGetDatum(array) != ids) pfree(array);
  return is_found;
}

// A dirty lookup finds two rows of a job that another transaction changes, and either row may come
// to hold.
bool is_waiting(IndexLookup* jobs, int64 job_id) {
  seek_id(jobs, job_id);
  while (next_row(jobs))
    if (!slot_attisnull(jobs->row, kJobWaitsOn)) return true;
  return false;
}

bool is_waited_for(int64 parent_id, int64 parents_key, IndexLookup* dependencies,
                   IndexLookup* jobs) {
  seek_id(dependencies, parents_key);
  while (next_row(dependencies)) {
    CHECK_FOR_INTERRUPTS();
    TupleTableSlot* row = dependencies->row;
    if (has_id(value_of(row, kDependencyParents), parent_id) &&
        is_waiting(jobs, DatumGetInt64(value_of(row, kDependencyChildId))))
      return true;
  }
  return false;
}

}  // namespace
}  // namespace pulse

// pulse_internal.is_waited_for(job_id): whether any job waits for this parent.
PULSE_FUNCTION(pulse_is_waited_for) {
  int64 id = PG_GETARG_INT64(0);
  const pulse::Catalog* tables = pulse::catalog();
  pulse::DirtyLookup dependencies;
  pulse::DirtyLookup jobs;
  pulse::open_dirty_lookup(&dependencies, tables->dependency, tables->dependency_parent_idx);
  pulse::open_dirty_lookup(&jobs, tables->job, tables->job_key);
  // A row of pulse.dependency has a single parent, or a parent with its neighbours.
  bool waits =
      pulse::is_waited_for(id, id, &dependencies.rows, &jobs.rows) ||
      pulse::is_waited_for(id, -pulse::first_neighbour(id), &dependencies.rows, &jobs.rows);
  pulse::close_dirty_lookup(&jobs);
  pulse::close_dirty_lookup(&dependencies);
  PG_RETURN_BOOL(waits);
}
