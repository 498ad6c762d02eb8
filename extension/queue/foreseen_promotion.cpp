// The jobs that the next promotion of a queue would open and park, found without locks: see
// sql/explain/promotion.sql.
#include "limit/queue_lock.hpp"
#include "queue/parked_jobs.hpp"
#include "server/values.hpp"

namespace pulse {
namespace {

// The answer leaves out whether the queue has the turn in a fair level, because it comes without an
// operator.
void foresee_promotion(Datum queue_name, Foresight* foresight) {
  text* name = DatumGetTextPP(queue_name);
  if (is_queue_locked(name)) return;
  LevelCounts counts = {};
  Admission admission = foresee_admission({queue_name, queue_bucket(name)}, foresight->job,
                                          foresight->snapshot, &counts, freed_places());
  if (admission.is_paused) return;
  Queue queue = find_places(admission, foresight->job, foresight->snapshot, nullptr, false);
  walk_parked(&queue, foresight);
}

NullableDatum foreseen_ids(ArrayBuildState* ids) {
  return given(ids ? makeArrayResult(ids, CurrentMemoryContext)
                   : PointerGetDatum(construct_empty_array(INT8OID)));
}

}  // namespace
}  // namespace pulse

// pulse_internal.promotion_of(queue_name, wanted)
PULSE_FUNCTION(pulse_promotion_of) {
  using namespace pulse;
  Relation job = table_open(catalog()->job, AccessShareLock);
  Foresight foresight = foreseeing_walk(job, GetActiveSnapshot(), PG_GETARG_INT64(1));
  foresee_promotion(PG_GETARG_DATUM(0), &foresight);
  table_close(job, NoLock);
  PG_RETURN_DATUM(
      result_row(fcinfo, {foreseen_ids(foresight.opened), foreseen_ids(foresight.parked)}));
}
