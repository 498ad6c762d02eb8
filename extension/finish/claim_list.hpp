// The claims that a plural call names, and its answer for each of them.
#pragma once

#include "finish/running_job.hpp"
#include "server/postgres.hpp"

namespace pulse {

// One argument of a plural call: a value per job, or NULL for none.
struct ArgumentArray {
  bool is_given;
  int count;
  Datum* values;
  bool* nulls;

  NullableDatum at(int i) const {
    if (!is_given || nulls[i]) return {static_cast<Datum>(0), true};
    return {values[i], false};
  }
};

ArgumentArray read_array(FunctionCallInfo fcinfo, int argument);

// Raises PU004 unless all have as many elements. The required ones have none where they are NULL.
void check_lengths(const ArgumentArray* arrays, int count, int required);

struct NamedClaim {
  int64 job_id;
  int64 token;
  bool is_named;        // neither is NULL
  int position;         // in the arrays of the call
  const char* outcome;  // NULL: no such attempt runs
};

// By id, so that two calls with the same jobs never wait for one another.
struct ClaimList {
  NamedClaim* claims;
  int count;
  int named_count;  // these come first
};

ClaimList read_claims(const ArgumentArray& job_ids, const ArgumentArray& tokens);

const char* outcome_of(Hold hold);

// Calls end(claim) once for each claim; it returns the outcome.
template <typename End>
void end_each(ClaimList* list, RunningJobs* jobs, End end) {
  NamedClaim* claims = list->claims;
  int count = list->named_count;
  if (count > 0) expect_ids(&jobs->ids, claims[0].job_id, claims[count - 1].job_id, count);
  for (int i = 0; i < count; i++) {
    CHECK_FOR_INTERRUPTS();
    bool is_repeated =
        i > 0 && claims[i].job_id == claims[i - 1].job_id && claims[i].token == claims[i - 1].token;
    claims[i].outcome = is_repeated ? claims[i - 1].outcome : end(claims[i]);
  }
}

// Answers in the order of the call. An attempt that does not run was ended so before, which is
// accepted, or its claim is stale.
void answer_claims(ClaimList* list, const ArgumentArray& job_ids, const char* repeats,
                   FunctionCallInfo fcinfo);

}  // namespace pulse
