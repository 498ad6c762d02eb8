// The specification of a job by its producer, and the row that it becomes.
#pragma once

#include "job/insert_jobs.hpp"
#include "job/table.hpp"
#include "job/task_settings.hpp"
#include "server/postgres.hpp"
#include "server/values.hpp"

namespace pulse {

// The attributes of type pulse.job_spec.
enum SpecColumn : AttrNumber {
  kSpecIdentifier = 1,
  kSpecPayload,
  kSpecQueueName,
  kSpecRunAt,
  kSpecMaxAttempts,
  kSpecJobKey,
  kSpecPriority,
  kSpecFlags,
  kSpecColumns = kSpecFlags,
};

// The previous job's task, which most of the jobs of one call share.
struct LastTask {
  Datum identifier;
  JobDefaults defaults;  // without attempts: no task yet
};

// The values of a job beside its specification: the producer that has added it, the parents that it
// waits for, the due time of its schedule, and the job whose dead letter it is.
struct Origin {
  NullableDatum waits_on;
  NullableDatum starts_when;
  NullableDatum scheduled_for;
  NullableDatum keeps_result;  // true, or NULL
  NullableDatum start_by;      // NULL: as the job's task says
  NullableDatum id;            // NULL: the next id
  NullableDatum added_by;      // NULL: all producers
  NullableDatum dead_letter_of;
};

// Of a job of this producer that waits for nothing.
Origin plain_origin(const NullableDatum& added_by);

TupleDesc spec_shape(HeapTupleHeader spec);

// Checks a specification and completes it with defaults; raises PU004.
void check_spec(RowValue* spec, LastTask* last);

void start_adding(NewJobs* jobs);

// Returns the row of a checked specification, and notes what the commit has to tell.
HeapTuple form_job(NewJobs* jobs, const RowValue& spec, LastTask* last, const Origin& origin);

}  // namespace pulse
