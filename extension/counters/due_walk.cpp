// The one walk that tells which waiting jobs are due, since when, and which jobs fall due later:
// sql/monitor/due.sql. The walk follows the index of the ready jobs of tasks, or of the jobs parked
// behind queues, in the order of the index:
// - Names are sorted, so the end of a name is often the beginning of the next name.
// - A priority costs two seeks at most: one behind the due jobs that are read, to the first later
//   job, and one behind the later jobs that are read, to the next priority or name.
// - Near entries cost no seek, and an entry that is not counted costs no visit of the table.
#include "access/catalog.hpp"
#include "access/columns.hpp"
#include "access/index_lookup.hpp"
#include "access/ordered_scan.hpp"
#include "server/call_checks.hpp"
#include "server/compat.hpp"
#include "server/values.hpp"
#include "shared/hashes.hpp"

extern "C" {
#include "access/visibilitymap.h"
}

namespace pulse {
namespace {

constexpr int kNearEntries = 16;  // entries that the walk steps over before it seeks
constexpr int kPriorities = 20;   // the walk of a name does the work of so many priorities
constexpr int kPagesOfName = 8;   // of a name with one priority: two seeks, and a job
constexpr int64 kMinuteUs = 60 * USECS_PER_SEC;

struct DueCount {
  int64 due;
  int64 future;
  int64 soon;            // future jobs that fall due within a minute
  TimestampTz oldest;    // run_at of the first due job; with due > 0
  TimestampTz next_due;  // run_at of the first future job; with future > 0
  bool more_due;
  bool more_future;
  bool more_soon;
};

// A place in the index, before the entries that sort after it.
struct Place {
  int16 priority;
  TimestampTz run_at;
  int64 id;
};
constexpr Place kBeginning = {PG_INT16_MIN, DT_NOBEGIN, PG_INT64_MIN};

struct DueWalk {
  IndexLookup rows;
  Buffer visibility_map;
  bool is_of_queues;
  int name_column;  // of the index; priority and run_at follow
  TimestampTz moment;
  // How many jobs of a name are read. Beyond the share one job of each priority is read.
  int64 due_share;
  int64 future_share;

  ScanKeyData key;
  ScanKeyData key_parts[5];  // `rows` keeps the address of the array

  // the present name
  Datum name;
  int bucket;  // of a queue
  bool may_have_future;
  int16 present_priority;  // that is counted
  int seeks;
  DueCount count;

  // the entry where the walk stands
  bool has_entry;
  int16 priority;
  TimestampTz run_at;
};

// --- steps ---------------------------------------------------------------------------------------

Datum entry_field(DueWalk* walk, int column) {
  bool isnull;
  IndexScanDesc scan = walk->rows.scan;
  return index_getattr(scan->xs_itup, column, scan->xs_itupdesc, &isnull);
}

void step_on(DueWalk* walk) {
  CHECK_FOR_INTERRUPTS();
  walk->has_entry = index_getnext_tid(walk->rows.scan, ForwardScanDirection) != nullptr;
  if (!walk->has_entry) return;
  walk->priority = DatumGetInt16(entry_field(walk, walk->name_column + 1));
  walk->run_at = DatumGetTimestampTz(entry_field(walk, walk->name_column + 2));
}

void seek_behind(DueWalk* walk, const Place& place) {
  walk->seeks++;
  const Datum values[] = {Int16GetDatum(static_cast<int16>(walk->bucket)), walk->name,
                          Int16GetDatum(place.priority), TimestampTzGetDatum(place.run_at),
                          Int64GetDatum(place.id)};
  int skipped = walk->is_of_queues ? 0 : 1;
  init_row_key(&walk->key, walk->key_parts, 1, BTGreaterStrategyNumber, values + skipped,
               static_cast<int>(lengthof(values)) - skipped);
  seek_keys(&walk->rows, &walk->key);
  step_on(walk);
}

// Below 0 where the entry sorts before the entries of the present name.
int compare_with_name(DueWalk* walk) {
  if (walk->is_of_queues) {
    int bucket = DatumGetInt16(entry_field(walk, 1));
    if (bucket != walk->bucket) return bucket < walk->bucket ? -1 : 1;
  }
  return DatumGetInt32(DirectFunctionCall2Coll(bttextcmp, C_COLLATION_OID,
                                               entry_field(walk, walk->name_column), walk->name));
}

bool is_on_name(DueWalk* walk) { return walk->has_entry && compare_with_name(walk) == 0; }

bool is_on_priority(DueWalk* walk, TimestampTz until) {
  return is_on_name(walk) && walk->priority == walk->present_priority && walk->run_at <= until;
}

// Leaves the entries of the present priority up to a time behind.
void leave_behind(DueWalk* walk, TimestampTz until) {
  for (int i = 0; i < kNearEntries && is_on_priority(walk, until); i++) step_on(walk);
  if (is_on_priority(walk, until)) seek_behind(walk, {walk->present_priority, until, PG_INT64_MAX});
}

// --- counts --------------------------------------------------------------------------------------

// The walk keeps the page of the index pinned, as an index-only scan does: no vacuum can remove the
// entry between its reading and the reading of the visibility map.
bool is_visible(DueWalk* walk) {
  IndexLookup* rows = &walk->rows;
  if (walk->is_of_queues &&
      VM_ALL_VISIBLE(rows->table, ItemPointerGetBlockNumber(&rows->scan->xs_heaptid),
                     &walk->visibility_map))
    return true;
  return index_fetch_heap(rows->scan, rows->row);
}

// Whether the snapshot shows the job of the entry, and the job waits: a job that was claimed in
// place keeps the entry.
bool has_waiting_job(DueWalk* walk) {
  return is_visible(walk) &&
         (walk->is_of_queues ||
          DatumGetObjectId(value_of(walk->rows.row, kJobState)) == catalog()->state_ready);
}

void count_due(DueWalk* walk) {
  DueCount* count = &walk->count;
  for (int64 jobs = 0; is_on_priority(walk, walk->moment); step_on(walk)) {
    if (jobs > 0 && count->due >= walk->due_share) {
      count->more_due = true;
      return;
    }
    if (!has_waiting_job(walk)) continue;
    jobs++;
    if (count->due++ == 0 || walk->run_at < count->oldest) count->oldest = walk->run_at;
  }
}

void count_future(DueWalk* walk) {
  DueCount* count = &walk->count;
  for (int64 jobs = 0; is_on_priority(walk, DT_NOEND); step_on(walk)) {
    bool is_soon = walk->run_at - walk->moment <= kMinuteUs;
    if (jobs > 0 && count->future >= walk->future_share) {
      count->more_future = true;
      count->more_soon |= is_soon;
      return;
    }
    if (!has_waiting_job(walk)) continue;
    jobs++;
    if (count->future++ == 0 || walk->run_at < count->next_due) count->next_due = walk->run_at;
    if (is_soon) count->soon++;
  }
}

void count_priority(DueWalk* walk) {
  walk->present_priority = walk->priority;
  count_due(walk);
  if (walk->may_have_future) {
    leave_behind(walk, walk->moment);
    count_future(walk);
  }
  leave_behind(walk, DT_NOEND);
}

bool has_work_left(const DueWalk* walk) {
  return walk->seeks < 2 * kPriorities && walk->count.due - kPriorities < walk->due_share &&
         walk->count.future - kPriorities < walk->future_share;
}

// Where the walk has come past the beginning of the name, the walk stands at the beginning: names
// come in the order of the index.
void count_name(DueWalk* walk, bool is_first) {
  walk->count = {};
  walk->seeks = 0;
  if (is_first || (walk->has_entry && compare_with_name(walk) < 0)) seek_behind(walk, kBeginning);
  while (is_on_name(walk)) {
    if (!has_work_left(walk)) {
      walk->count.more_due = true;
      walk->count.more_future = walk->count.more_soon = walk->may_have_future;
      return;
    }
    count_priority(walk);
  }
}

// --- the call ------------------------------------------------------------------------------------

struct Name {
  Datum name;
  int bucket;  // of a queue, else 0
  bool may_have_future;
};

int compare_names(const void* a, const void* b) {
  auto* one = static_cast<const Name*>(a);
  auto* other = static_cast<const Name*>(b);
  if (one->bucket != other->bucket) return one->bucket < other->bucket ? -1 : 1;
  return DatumGetInt32(DirectFunctionCall2Coll(bttextcmp, C_COLLATION_OID, one->name, other->name));
}

// A name whose latest job is due has no future job.
Name* read_names(FunctionCallInfo fcinfo, const DueWalk& walk, int* count) {
  Datum* names = text_elements(PG_GETARG_ARRAYTYPE_P(1), "names", count);
  Datum* latest = nullptr;
  bool* nulls = nullptr;
  int times = *count;
  if (!PG_ARGISNULL(2))
    deconstruct_array(PG_GETARG_ARRAYTYPE_P(2), TIMESTAMPTZOID, sizeof(TimestampTz), true,
                      TYPALIGN_DOUBLE, &latest, &nulls, &times);
  if (times != *count) elog(ERROR, "%d times for %d names", times, *count);
  auto* read = static_cast<Name*>(palloc(sizeof(Name) * Max(*count, 1)));
  for (int i = 0; i < *count; i++) {
    bool is_later = !latest || (!nulls[i] && DatumGetTimestampTz(latest[i]) > walk.moment);
    read[i] = {names[i], walk.is_of_queues ? queue_bucket(DatumGetTextPP(names[i])) : 0,
               is_later && walk.future_share > 0};
  }
  return read;
}

void put_count(ReturnSetInfo* results, Datum name, const DueCount& count) {
  Datum values[] = {name,
                    Int64GetDatum(count.due),
                    Int64GetDatum(count.future),
                    Int64GetDatum(count.soon),
                    TimestampTzGetDatum(count.oldest),
                    TimestampTzGetDatum(count.next_due),
                    BoolGetDatum(count.more_due),
                    BoolGetDatum(count.more_future),
                    BoolGetDatum(count.more_soon)};
  bool nulls[lengthof(values)] = {};
  nulls[4] = count.due == 0;
  nulls[5] = count.future == 0;
  tuplestore_putvalues(results->setResult, results->setDesc, values, nulls);
}

// Counts the names in the given order as far as the pages reach, and each part of the names in the
// order of the index: so many names as the pages suffice for in any case, then again.
void count_names(DueWalk* walk, Name* names, int count, int64 pages, ReturnSetInfo* results) {
  int64 last_page = pages == PG_INT64_MAX ? pages : pages_read() + pages;
  for (int end = 0, at = 0; at < count && pages_read() < last_page; at++) {
    bool is_first = at == end;
    if (is_first) {
      int64 part = Max((last_page - pages_read()) / kPagesOfName, 1);
      end = static_cast<int>(at + Min(part, count - at));
      qsort(names + at, end - at, sizeof(Name), compare_names);
    }
    walk->name = names[at].name;
    walk->bucket = names[at].bucket;
    walk->may_have_future = names[at].may_have_future;
    count_name(walk, is_first);
    put_count(results, walk->name, walk->count);
  }
}

int64 bound_of(FunctionCallInfo fcinfo, int number) {
  return PG_ARGISNULL(number) ? PG_INT64_MAX : Max(PG_GETARG_INT64(number), 0);
}

}  // namespace
}  // namespace pulse

// pulse_internal.count_due(of_kind, names, latest, moment, due_share, future_share, pages)
PULSE_FUNCTION(pulse_count_due) {
  pulse::require_arguments(fcinfo, {0, 1, 3});
  pulse::begin_result_rows(fcinfo);
  pulse::DueWalk walk = {};
  walk.is_of_queues = pulse::text_is(PG_GETARG_DATUM(0), "queue");
  walk.name_column = walk.is_of_queues ? 2 : 1;
  walk.moment = PG_GETARG_TIMESTAMPTZ(3);
  walk.due_share = pulse::bound_of(fcinfo, 4);
  walk.future_share = pulse::bound_of(fcinfo, 5);
  int count;
  pulse::Name* names = pulse::read_names(fcinfo, walk, &count);
  Relation job = table_open(pulse::catalog()->job, AccessShareLock);
  const pulse::Catalog* catalog = pulse::catalog();
  pulse::open_index_lookup(&walk.rows, job,
                           walk.is_of_queues ? catalog->job_parked_idx : catalog->job_claim_idx,
                           GetActiveSnapshot(), 1);
  walk.rows.scan->xs_want_itup = true;
  pulse::count_names(&walk, names, count, pulse::bound_of(fcinfo, 6),
                     reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo));
  if (BufferIsValid(walk.visibility_map)) ReleaseBuffer(walk.visibility_map);
  pulse::close_index_lookup(&walk.rows);
  table_close(job, AccessShareLock);
  return static_cast<Datum>(0);
}
