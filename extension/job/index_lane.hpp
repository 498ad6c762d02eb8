// Which indexes have a job. sql/tables.sql says it with two generated columns, lane and
// running_worker_id, and the predicates of eight indexes; this file says the same for rows that are
// written directly. test/pgtap/index_lane.sql compares both for every kind of job.
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

// The generated column of this name. A job in it that is kLaneRunning has a holder: its worker.
char index_lane(Oid state, bool is_in_place);

// A bit for each index that has such a job.
uint32 indexes_with(char lane, bool has_queue, bool has_key);

}  // namespace pulse
