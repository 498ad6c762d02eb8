#include "job/scan.hpp"

#include "access/catalog.hpp"
#include "server/values.hpp"
#include "shared/memory.hpp"

namespace pulse {
namespace {

// How many entries of one queue a walk over queues passes before it seeks the next queue.
constexpr int kNearEntries = 16;

bool next_entry(IndexLookup* parked) {
  parked->has_row = index_getnext_tid(parked->scan, ForwardScanDirection);
  return parked->has_row;
}

// The name comes from the index entry, dead or alive, because any number of dead entries may
// follow.
text* name_of_entry(IndexLookup* parked) {
  bool isnull;
  return DatumGetTextPP(
      index_getattr(parked->scan->xs_itup, 2, parked->scan->xs_itupdesc, &isnull));
}

bool is_of_queue(IndexLookup* parked, Datum name) {
  return is_same_text(PointerGetDatum(name_of_entry(parked)), name);
}

bool seek_entry(IndexLookup* parked, StrategyNumber strategy, Oid function, int bucket,
                Datum after) {
  ScanKeyData keys[2];
  ScanKeyInit(&keys[0], 1, strategy, function, Int16GetDatum(static_cast<int16>(bucket)));
  init_text_key(&keys[1], 2, BTGreaterStrategyNumber, F_TEXT_GT, after);
  seek_keys(parked, keys);
  return next_entry(parked);
}

// Steps past the entries of this queue, or seeks the next queue where this one has many.
bool pass_queue(IndexLookup* parked, int bucket, Datum name) {
  if (parked->has_row && is_of_queue(parked, name))
    for (int i = 0; i < kNearEntries; i++)
      if (!next_entry(parked) || !is_of_queue(parked, name)) return parked->has_row;
  return seek_entry(parked, BTEqualStrategyNumber, F_INT2EQ, bucket, name);
}

}  // namespace

// The promotion locks the table in the mode that a later change of a row needs. With a weaker lock
// first, REINDEX could come in between and wait for the lock of the index.
void open_job_scan(JobScan* scan, Oid Catalog::*index, int keys) {
  CommandCounterIncrement();
  scan->job = table_open(catalog()->job, RowExclusiveLock);
  scan->snapshot = RegisterSnapshot(GetLatestSnapshot());
  open_index_lookup(&scan->rows, scan->job, catalog()->*index, scan->snapshot, keys);
  scan->rows.scan->xs_want_itup = true;
}

void close_job_scan(JobScan* scan) {
  close_index_lookup(&scan->rows);
  UnregisterSnapshot(scan->snapshot);
  table_close(scan->job, NoLock);
}

bool next_queue(IndexLookup* parked, int* bucket, Datum* name, bool same_bucket) {
  if (!pass_queue(parked, *bucket, *name) &&
      (same_bucket ||
       !seek_entry(parked, BTGreaterStrategyNumber, F_INT2GT, *bucket, CStringGetTextDatum(""))))
    return false;
  text* found = name_of_entry(parked);
  *name = PointerGetDatum(DatumGetTextPCopy(PointerGetDatum(found)));
  *bucket = queue_bucket(found);
  return true;
}

}  // namespace pulse
