// Claiming: the changes that a claim makes to the row of one job, and the row that the worker gets.
// Two callers use this file: claim(), which takes due jobs, and claim_job(), which takes a job by
// its id.
#pragma once

#include "access/catalog.hpp"
#include "access/columns.hpp"
#include "job/table.hpp"
#include "job/task_settings.hpp"
#include "limit/rate.hpp"
#include "server/postgres.hpp"

namespace pulse {

// The values that all jobs of one call get.
struct ClaimStamp {
  int64 worker_id;
  int64 token;
  TimestampTz now;
  int64 live_now;
};

// Claims the last locked row of the table for the worker of the stamp, and puts the new row into
// `changed`. Requires the worker's lock, shared.
void claim_locked_row(JobTable* table, const ClaimStamp& stamp, bool is_in_place,
                      KnownLevel* known);

// The number of columns of pulse.claimed_job.
constexpr int kClaimedColumns = 23;

// The number of columns in 0.1.0, whose rows of pulse.job end before kJobScheduledFor.
constexpr int kClaimedColumnsIn010 = 20;

// Fills the columns of pulse.claimed_job from the values of a row of pulse.job, in the order of
// JobColumn. read_claimed() reads no column after claimed_from().
inline int claimed_from() { return catalog()->has_index_lanes ? kJobTraceparent : kJobCreatedAt; }
void read_claimed(const Datum* job, const bool* job_nulls, const TaskSettings& task, Datum* values,
                  bool* nulls);

}  // namespace pulse
