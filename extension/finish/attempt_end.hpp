// How an attempt ends that does not simply succeed. Each such end is decided here and only here:
// the next state of the job, its next run_at, its attempts and its crashes. sql/README.md has the
// table of transitions.
#pragma once

#include "finish/attempt_record.hpp"
#include "finish/backoff.hpp"
#include "finish/running_job.hpp"
#include "server/postgres.hpp"

namespace pulse {

// What the caller says of the end. As type pulse._ending, but for the checkpoint.
struct Ending {
  enum Kind { kOther, kLost, kReleased, kInterrupted, kSnoozed };
  int64 job_id;
  Datum outcome;  // text
  Kind kind;
  bool may_retry;
  bool keeps_cause;  // the cause of the last recovery is still told
  NullableDatum error;
  NullableDatum retry_in;
  NullableDatum payload;
  NullableDatum checkpoint;
  NullableDatum cause;
};

// All fields that may be NULL are.
Ending new_ending(Datum outcome, Ending::Kind kind);

struct AttemptEnds {
  RunningJobs jobs;
  AttemptRecords records;
  TaskRule rule;
  text* rule_is_of;  // the task of the job before; most have one task only
};

void open_attempt_ends(AttemptEnds* ends);
// What follows in this transaction sees what was done.
void close_attempt_ends(AttemptEnds* ends);

struct EndedAttempt {
  Hold hold;
  const char* state;  // of the job, when the attempt was held
};

// Ends the attempt of a running job.
EndedAttempt end_attempt(AttemptEnds* ends, const Ending& ending, AttemptOf of,
                         Patience patience = Patience::kNeverWaits);

}  // namespace pulse
