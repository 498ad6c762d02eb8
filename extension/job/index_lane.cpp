#include "job/index_lane.hpp"

#include "access/columns.hpp"
#include "job/job_table.hpp"
#include "server/values.hpp"

namespace pulse {

Oid oid_of_index(JobIndex which) {
  const Catalog* known = catalog();
  switch (which) {
    case kKeyIndex: return known->job_key;
    case kClaimIndex: return known->job_claim_idx;
    case kRunningIndex: return known->job_running_idx;
    case kParkedIndex: return known->job_parked_idx;
    case kParkedDueIndex: return known->job_parked_due_idx;
    case kOpenIndex: return known->job_open_idx;
    case kWaitingKeyIndex: return known->job_waiting_key_idx;
    default: return known->job_running_key_idx;
  }
}

char index_lane(Oid state, bool is_in_place) {
  if (state == catalog()->state_parked) return kLaneParked;
  return state == catalog()->state_running && !is_in_place ? kLaneRunning : kLaneOpen;
}

uint32 indexes_with(char lane, bool has_queue, bool has_key) {
  uint32 indexes = 1u << kKeyIndex;
  if (lane == kLaneOpen) indexes |= 1u << kClaimIndex;
  if (lane == kLaneRunning) indexes |= 1u << kRunningIndex;
  if (lane == kLaneParked) indexes |= 1u << kParkedIndex | 1u << kParkedDueIndex;
  if (has_queue && lane != kLaneParked) indexes |= 1u << kOpenIndex;
  if (has_key) indexes |= 1u << (lane == kLaneRunning ? kRunningKeyIndex : kWaitingKeyIndex);
  return indexes;
}

namespace {

Datum names_of(uint32 indexes) {
  Datum names[kJobIndexes];
  int count = 0;
  for (int i = 0; i < kJobIndexes; i++)
    if (indexes & (1u << i))
      names[count++] = CStringGetTextDatum(get_rel_name(oid_of_index(static_cast<JobIndex>(i))));
  return PointerGetDatum(construct_array(names, count, TEXTOID, -1, false, TYPALIGN_INT));
}

}  // namespace
}  // namespace pulse

// pulse._index_rules(job): the index lane, running worker and indexes that a direct write gives.
PULSE_FUNCTION(pulse_index_rules) {
  using namespace pulse;
  RowValue job;
  read_row_value(&job, PG_GETARG_HEAPTUPLEHEADER(0), "job");
  char lane =
      index_lane(DatumGetObjectId(job.value(kJobState)), DatumGetBool(job.value(kJobInPlace)));
  bool has_running_worker = lane == kLaneRunning && job.has(kJobWorkerId);
  uint32 indexes = indexes_with(lane, job.has(kJobQueueName), job.has(kJobKey));
  Datum values[] = {CharGetDatum(lane), job.value(kJobWorkerId), names_of(indexes)};
  bool are_null[] = {false, !has_running_worker, false};
  TupleDesc answer;
  if (get_call_result_type(fcinfo, nullptr, &answer) != TYPEFUNC_COMPOSITE)
    elog(ERROR, "return type must be a row type");
  PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(answer), values, are_null)));
}
