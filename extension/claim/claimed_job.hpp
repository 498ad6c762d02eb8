// One claimed job: the changes that a claim makes to its row, and the row that the worker gets.
// Both claim(), which takes due jobs, and claim_job(), which takes one by its id, use this file.
#pragma once

#include "access/catalog.hpp"
#include "access/columns.hpp"
#include "job/job_table.hpp"
#include "job/task_settings.hpp"
#include "queue/rate.hpp"
#include "server/postgres.hpp"

namespace pulse {

// The values that all jobs of one call get.
struct ClaimStamp {
  int64 worker_id;
  int64 token;
  TimestampTz now;
  int64 live_now;
};

// Claims the row that was locked last for the worker of the stamp, and puts it into `changed`.
void claim_locked_row(JobTable* table, const ClaimStamp& stamp, bool is_in_place,
                      KnownLevel* known);

// The number of columns of pulse.claimed_job.
constexpr int kClaimedColumns = 23;

// Those of 0.1.0, whose rows of pulse.job end before kJobScheduledFor.
constexpr int kClaimedColumnsIn010 = 20;

// Fills the columns of pulse.claimed_job from the values of a row of pulse.job, in the order of
// JobColumn. It reads no column after claimed_from().
inline int claimed_from() { return catalog()->has_index_lanes ? kJobTraceparent : kJobCreatedAt; }
void read_claimed(const Datum* job, const bool* job_nulls, const TaskSettings& task, Datum* values,
                  bool* nulls);

}  // namespace pulse
