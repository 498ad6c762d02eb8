// Finishing: ends of attempts other than completion. Only this file decides the job's next state,
// run_at, attempts and crashes. sql/README.md has the table of transitions.
#pragma once

#include "finish/attempt_record.hpp"
#include "finish/running_job.hpp"
#include "server/postgres.hpp"
#include "server/values.hpp"

namespace pulse {

// The end of an attempt as the caller states it: the fields of type pulse_internal.ending, and a
// checkpoint.
struct Ending {
  enum Kind { kOther, kLost, kReleased, kInterrupted, kSnoozed };
  Kind kind;
  Datum outcome;  // text
  int64 job_id = 0;
  bool may_retry = true;
  // A job with an earlier crash, or on its last chance, is lost; any other job ends as `kind` and
  // `outcome` say.
  bool is_lost_if_suspect = false;
  NullableDatum error = kNull;
  NullableDatum retry_in = kNull;
  NullableDatum payload = kNull;
  NullableDatum checkpoint = kNull;
  NullableDatum cause = kNull;
};

// The kind of an ending with this outcome.
Ending::Kind kind_of_ending(Datum outcome);

struct AttemptEnds {
  RunningJobs jobs;
  AttemptRecords records;
};

// Opens the tables of jobs and records; close_attempt_ends() closes them.
void open_attempt_ends(AttemptEnds* ends);
// Makes the ends visible to the next statement of the transaction.
void close_attempt_ends(AttemptEnds* ends);

struct EndedAttempt {
  AttemptLock lock;
  const char* state;  // the next state of the job if the job was locked; else NULL
};

// Ends the attempt of a running job: the attempt with this token, or with NULL any attempt. Returns
// kBusy or kNotRunning where no attempt could be ended.
EndedAttempt end_attempt(AttemptEnds* ends, const Ending& stated, const NullableDatum& token,
                         Patience patience = Patience::kNeverWaits);

}  // namespace pulse
