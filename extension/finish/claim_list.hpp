// Finishing: the claims that a call names, and the answer of the call for each claim.
#pragma once

#include "finish/running_job.hpp"
#include "server/postgres.hpp"

namespace pulse {

// Refuses in a read-only transaction, and finds the shared memory that a commit writes.
void prepare_to_end(const char* function);

// For a call whose claim runs no attempt. Returns the state of the job, or NULL, if the records say
// that the claim ended its attempt with this outcome. Otherwise raises PU001.
NullableDatum require_repeat(const NullableDatum& job_id, const NullableDatum& token,
                             const char* outcome);

// --- calls for many jobs -------------------------------------------------------------------------

// An argument of a call for many jobs: a value per job, or NULL.
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

// Reads the first `count` arguments. Raises PU004 unless all arrays have the same length. A
// required array that is NULL counts as empty; the check ignores any other NULL array. In
// read_claim_arrays() the first two arrays are job ids and tokens, without NULL elements.
void read_arrays(FunctionCallInfo fcinfo, ArgumentArray* arrays, int count, int required);
void read_claim_arrays(FunctionCallInfo fcinfo, ArgumentArray* arrays, int count, int required);

struct NamedClaim {
  int64 job_id;
  int64 token;
  int position;         // in the arrays of the call
  const char* outcome;  // accepted if the records say that the claim ended with this outcome
  AttemptLock lock;
};

// The claims sorted by id, so that two calls with the same jobs never deadlock.
struct ClaimList {
  NamedClaim* claims;
  int count;
};

// Each claim starts as kNotRunning, with the outcome that the call gives.
ClaimList read_claims(const ArgumentArray& job_ids, const ArgumentArray& tokens,
                      const char* outcome);

// Waits until the heartbeats and claims in progress of a busy claim's worker have ended, because
// these transactions lock rows of the worker's jobs. False when there is no such transaction or the
// time is up. The first wait of a call sets the limit for all waits.
bool outwait_worker(RunningJobs* jobs, int64* limit);

// Calls end() until the claim is not busy, or until only a transaction that does not belong to the
// claim's worker keeps it busy.
template <typename End>
AttemptLock end_patiently(RunningJobs* jobs, int64* limit, End end) {
  constexpr int kMaxWaits = 2;
  AttemptLock lock = end();
  for (int i = 0; i < kMaxWaits && lock == AttemptLock::kBusy && outwait_worker(jobs, limit); i++)
    lock = end();
  return lock;
}

// Calls end(claim) for each claim, and stores the returned lock in the claim.
template <typename End>
void end_each(ClaimList* list, RunningJobs* jobs, End end) {
  NamedClaim* claims = list->claims;
  int count = list->count;
  int64 limit = 0;
  if (count > 0) expect_ids(&jobs->ids, claims[0].job_id, claims[count - 1].job_id, count);
  for (int i = 0; i < count; i++) {
    CHECK_FOR_INTERRUPTS();
    bool is_repeated =
        i > 0 && claims[i].job_id == claims[i - 1].job_id && claims[i].token == claims[i - 1].token;
    claims[i].lock = is_repeated ? claims[i - 1].lock
                                 : end_patiently(jobs, &limit, [&] { return end(claims[i]); });
  }
}

// Answers in the order of the call. A claim that runs no attempt is accepted if it ended the
// attempt with its outcome before and the transaction had not written; otherwise it is stale. A
// claim is busy when another transaction has locked the row.
void answer_claims(const ClaimList& list, const ArgumentArray& job_ids, FunctionCallInfo fcinfo);

}  // namespace pulse
