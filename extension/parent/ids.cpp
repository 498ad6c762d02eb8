// Parents: the ids of many parents at once, because SQL would pay an executor for each id.
#include "access/catalog.hpp"
#include "access/index_lookup.hpp"
#include "parent/neighbours.hpp"
#include "server/compat.hpp"
#include "server/postgres.hpp"

namespace pulse {
namespace {

struct Ids {
  Datum* values;
  int count;
};

Ids ids_of(ArrayType* array) {
  Ids ids;
  deconstruct_array(array, INT8OID, 8, FLOAT8PASSBYVAL, TYPALIGN_DOUBLE, &ids.values, nullptr,
                    &ids.count);
  return ids;
}

Datum as_array(const Ids& ids) {
  return PointerGetDatum(
      construct_array(ids.values, ids.count, INT8OID, 8, FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
}

int compare_parents(const void* left, const void* right) {
  int64 a = DatumGetInt64(*static_cast<const Datum*>(left));
  int64 b = DatumGetInt64(*static_cast<const Datum*>(right));
  return a < b ? -1 : a > b;
}

void keep_each_once(Ids* ids) {
  qsort(ids->values, ids->count, sizeof(Datum), compare_parents);
  int kept = 0;
  for (int i = 0; i < ids->count; i++)
    if (kept == 0 || ids->values[i] != ids->values[kept - 1]) ids->values[kept++] = ids->values[i];
  ids->count = kept;
}

int64 neighbours_from(const Ids& ids, int i = 0) {
  return first_neighbour(DatumGetInt64(ids.values[i]));
}

// How many ids, from the first id on, are neighbours.
int count_neighbours(const Ids& ids) {
  int count = 1;
  while (count < ids.count && neighbours_from(ids, count) == neighbours_from(ids)) count++;
  return count;
}

// Keeps the ids of jobs that live, or the other ids. The ids are in order.
void keep_where(Ids* ids, bool lives) {
  if (ids->count == 0) return;
  Relation table = table_open(catalog()->job, AccessShareLock);
  IndexLookup jobs;
  open_index_lookup(&jobs, table, catalog()->job_key, GetActiveSnapshot());
  expect_ids(&jobs, DatumGetInt64(ids->values[0]), DatumGetInt64(ids->values[ids->count - 1]),
             ids->count);
  int kept = 0;
  for (int i = 0; i < ids->count; i++) {
    CHECK_FOR_INTERRUPTS();
    if (find_id(&jobs, DatumGetInt64(ids->values[i])) == lives)
      ids->values[kept++] = ids->values[i];
  }
  close_index_lookup(&jobs);
  table_close(table, AccessShareLock);
  ids->count = kept;
}

}  // namespace
}  // namespace pulse

// pulse_internal.in_order(ids): each id once, in ascending order.
PULSE_FUNCTION(pulse_in_order) {
  pulse::Ids ids = pulse::ids_of(PG_GETARG_ARRAYTYPE_P(0));
  pulse::keep_each_once(&ids);
  PG_RETURN_DATUM(pulse::as_array(ids));
}

// pulse_internal.neighbours_of(parent_id)
PULSE_FUNCTION(pulse_neighbours_of) {
  // No job has a negative id, and callers negate the number.
  PG_RETURN_INT64(pulse::first_neighbour(Max(PG_GETARG_INT64(0), 0)));
}

// pulse_internal.neighbours(ids): a row for each row that pulse.dependency needs for these parents.
PULSE_FUNCTION(pulse_neighbours) {
  pulse::begin_result_rows(fcinfo);
  auto* rows = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
  pulse::Ids ids = pulse::ids_of(PG_GETARG_ARRAYTYPE_P(0));
  pulse::keep_each_once(&ids);
  while (ids.count > 0) {
    CHECK_FOR_INTERRUPTS();
    pulse::Ids run = {ids.values, pulse::count_neighbours(ids)};
    Datum values[] = {Int64GetDatum(pulse::neighbours_from(run)), pulse::as_array(run)};
    bool nulls[] = {false, false};
    tuplestore_putvalues(rows->setResult, rows->setDesc, values, nulls);
    pfree(DatumGetPointer(values[1]));
    ids.values += run.count;
    ids.count -= run.count;
  }
  return static_cast<Datum>(0);
}

// pulse_internal.live_ids(ids, lives): the ids of jobs that live, or of jobs that do not live.
PULSE_FUNCTION(pulse_live_ids) {
  pulse::Ids ids = pulse::ids_of(PG_GETARG_ARRAYTYPE_P(0));
  pulse::keep_where(&ids, PG_GETARG_BOOL(1));
  PG_RETURN_DATUM(pulse::as_array(ids));
}
