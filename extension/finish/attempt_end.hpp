// Ends of attempts other than completion. Only this file decides the job's next state, run_at,
// attempts and crashes. sql/README.md has the table of transitions.
#pragma once

#include "finish/attempt_record.hpp"
#include "finish/running_job.hpp"
#include "server/postgres.hpp"

namespace pulse {

// The end of an attempt as the caller states it: type pulse._ending, and a checkpoint.
struct Ending {
  enum Kind { kOther, kLost, kReleased, kInterrupted, kSnoozed };
  int64 job_id;
  Datum outcome;  // text
  Kind kind;
  bool may_retry;
  bool keeps_cause;  // the next claim still reports the cause of the last recovery
  NullableDatum error;
  NullableDatum retry_in;
  NullableDatum payload;
  NullableDatum checkpoint;
  NullableDatum cause;
};

// All fields that can be NULL are NULL.
Ending new_ending(Datum outcome, Ending::Kind kind);

struct AttemptEnds {
  RunningJobs jobs;
  AttemptRecords records;
};

void open_attempt_ends(AttemptEnds* ends);
// Makes the ends visible to the next statement of the transaction.
void close_attempt_ends(AttemptEnds* ends);

struct EndedAttempt {
  AttemptLock lock;
  const char* state;  // the next state of the job if it was locked; else NULL
};

// Ends the attempt of a running job: that with this token, or with NULL any.
EndedAttempt end_attempt(AttemptEnds* ends, const Ending& ending, const NullableDatum& token,
                         Patience patience = Patience::kNeverWaits);

}  // namespace pulse
