#include "parent/resolve.hpp"

#include "access/catalog.hpp"
#include "access/columns.hpp"
#include "access/saved_plan.hpp"
#include "job/scan.hpp"
#include "server/values.hpp"
#include "wake/pending_wakes.hpp"
#include "wake/promotion_marks.hpp"

namespace pulse {

// The function in sql/flow/wait_for_parents.sql decides.
bool resolve_waits(int bucket) {
  static SavedPlan query = {"SELECT pulse_internal.resolve_waits($1)", 1, {INT4OID}, nullptr};
  NullableDatum argument = {Int32GetDatum(bucket), false};
  bool is_left = DatumGetBool(value_of_query(&query, &argument).value);
  if (is_left) return_promotion_mark(parent_mark(bucket));
  return is_left;
}

// One step of a skip scan for each bucket that jobs wait for.
void mark_all_parents(DatabaseState* database) {
  JobScan waits;
  open_job_scan(&waits, &Catalog::job_waits_idx, 1);
  ScanKeyData key;
  for (int bucket = -1;;) {
    CHECK_FOR_INTERRUPTS();
    ScanKeyInit(&key, 1, BTGreaterStrategyNumber, F_INT8GT, Int64GetDatum(bucket));
    seek_keys(&waits.rows, &key);
    if (!next_row(&waits.rows)) break;
    bucket = parent_bucket(DatumGetInt64(value_of(waits.rows.row, kJobWaitsOn)));
    set_promotion_mark(database, parent_mark(bucket));
  }
  close_job_scan(&waits);
}

}  // namespace pulse
