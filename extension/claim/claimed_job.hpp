// One job that a worker gets: what its claim changes in the row, and the row that the worker sees.
// Every way to a claim goes through here: claim() takes the due jobs, claim_job() one by its id.
#pragma once

#include "access/columns.hpp"
#include "job/job_table.hpp"
#include "job/task_settings.hpp"
#include "server/postgres.hpp"

namespace pulse {

// What an SQL function got as pulse.job.
struct JobValue {
  Datum values[kMaxColumns];
  bool nulls[kMaxColumns];
};

void read_job(JobValue* job, HeapTupleHeader header);

// One call claims all its jobs with the same.
struct ClaimStamp {
  int64 worker_id;
  int64 token;
  TimestampTz now;
  int64 live_now;
};

// Makes the row that was locked last the stamp's; `changed` has it then.
void claim_locked_row(JobTable* table, const ClaimStamp& stamp, bool is_in_place);

// Columns of pulse.claimed_job.
constexpr int kClaimedColumns = 20;

// What the worker sees of a claimed row, whose values come in the order of JobColumn. Later columns
// than this one are not asked for.
constexpr int kClaimedFrom = kJobCreatedAt;
void read_claimed(const Datum* job, const bool* job_nulls, const TaskSettings& task, Datum* values,
                  bool* nulls);

}  // namespace pulse
