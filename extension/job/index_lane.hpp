// Which indexes have an entry of a job. sql/tables.sql defines it by two generated columns,
// index_lane and running_worker_id, and the predicates of eight indexes. This file repeats the rule
// for rows that C code writes directly. test/pgtap/index_lane.sql compares both for every job
// state.
#pragma once

#include "access/catalog.hpp"
#include "server/postgres.hpp"

namespace pulse {

enum JobIndex {
  kKeyIndex,
  kClaimIndex,
  kRunningIndex,
  kParkedIndex,
  kParkedDueIndex,
  kOpenIndex,
  kWaitingKeyIndex,
  kRunningKeyIndex
};

Oid oid_of_index(JobIndex which);

// The value of the generated column. The column running_worker_id is set in kLaneRunning only.
char index_lane(Oid state, bool is_in_place);

// A bit for each index that has an entry of such a job.
uint32 indexes_with(char lane, bool has_queue, bool has_key);

}  // namespace pulse
