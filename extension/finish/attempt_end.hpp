// How an attempt ends that does not simply succeed: its job runs again, or is kept as ended, and
// the audit tells of it. Rows are changed without planner and executor. Of what needs more, SQL
// decides (sql/attempt.sql): a job whose cancellation was asked for, one with a key, which another
// may have taken, and all where somebody hung triggers on the tables.
#pragma once

#include "access/index_lookup.hpp"
#include "finish/backoff.hpp"
#include "job/job_table.hpp"
#include "server/postgres.hpp"

namespace pulse {

// As type pulse._ending.
struct Ending {
  enum Kind { kOther, kLost, kReleased, kInterrupted };
  int64 job_id;
  Datum outcome;  // text
  Kind kind;
  bool may_retry;
  bool keeps_cause;  // the way of the last recovery is still told
  NullableDatum error;
  NullableDatum retry_in;
  NullableDatum payload;
  NullableDatum cause;
};

struct AttemptEnds {
  JobTable jobs;
  JobTable attempts;
  JobTable finished;
  IndexLookup ids;
  TimestampTz now;
  RetryRule rule;
  text* rule_is_of;  // the task of the job before; most have one task only
  bool by_sql;       // all of them
};

void open_attempt_ends(AttemptEnds* ends);
// What follows in this transaction sees what was done.
void close_attempt_ends(AttemptEnds* ends);

// Whose attempt it must be for it to end: that of the claim with this token, any of this worker
// (kJobWorkerId), or with column 0 anybody's.
struct AttemptOf {
  int column;
  int64 number;
};

// Ends the attempt of a running job and returns the job's new state. NULL, and nothing is done or
// locked, where SQL is to decide, also of a job that somebody holds or that is not there.
const char* end_attempt(AttemptEnds* ends, const Ending& ending, AttemptOf of);

}  // namespace pulse
