#include "finish/claim_list.hpp"

#include "finish/past_claim.hpp"
#include "server/compat.hpp"
#include "server/errors.hpp"

extern "C" {
#include "lib/stringinfo.h"
}

namespace pulse {
namespace {

// Claims with a NULL come last.
int by_id_and_token(const void* a, const void* b) {
  auto* left = static_cast<const NamedClaim*>(a);
  auto* right = static_cast<const NamedClaim*>(b);
  if (left->is_named != right->is_named) return left->is_named ? -1 : 1;
  if (left->job_id != right->job_id) return left->job_id < right->job_id ? -1 : 1;
  if (left->token != right->token) return left->token < right->token ? -1 : 1;
  // If two elements name the same claim, the first one counts.
  return left->position < right->position ? -1 : left->position > right->position;
}

const char* late_outcome(const NamedClaim& claim, const char* repeats) {
  NullableDatum job_id = {Int64GetDatum(claim.job_id), false};
  NullableDatum token = {Int64GetDatum(claim.token), false};
  return refusal_of(job_id, token, repeats) ? "stale" : "accepted";
}

}  // namespace

ArgumentArray read_array(FunctionCallInfo fcinfo, int argument) {
  ArgumentArray array = {};
  if (PG_ARGISNULL(argument)) return array;
  ArrayType* given = PG_GETARG_ARRAYTYPE_P(argument);
  int16 length;
  bool by_value;
  char align;
  get_typlenbyvalalign(ARR_ELEMTYPE(given), &length, &by_value, &align);
  deconstruct_array(given, ARR_ELEMTYPE(given), length, by_value, align, &array.values,
                    &array.nulls, &array.count);
  array.is_given = true;
  return array;
}

void check_lengths(const ArgumentArray* arrays, int count, int required) {
  bool is_even = true;
  for (int i = 0; i < count; i++)
    if (i < required || arrays[i].is_given) is_even = is_even && arrays[i].count == arrays[0].count;
  if (is_even) return;
  StringInfoData lengths;
  initStringInfo(&lengths);
  for (int i = 0; i < count; i++)
    if (i < required || arrays[i].is_given)
      appendStringInfo(&lengths, "%s%d", i > 0 ? ", " : "", arrays[i].count);
  ereport(ERROR, (errcode(kOutOfRange), errmsg("the arrays have different lengths"),
                  errdetail("They have %s elements.", lengths.data),
                  errhint("Give one element per job in each.")));
}

ClaimList read_claims(const ArgumentArray& job_ids, const ArgumentArray& tokens) {
  ClaimList list = {};
  list.count = job_ids.count;
  list.claims = static_cast<NamedClaim*>(palloc0(sizeof(NamedClaim) * Max(list.count, 1)));
  for (int i = 0; i < list.count; i++) {
    bool is_named = !job_ids.nulls[i] && !tokens.nulls[i];
    list.claims[i].is_named = is_named;
    list.claims[i].position = i;
    if (!is_named) continue;
    list.claims[i].job_id = DatumGetInt64(job_ids.values[i]);
    list.claims[i].token = DatumGetInt64(tokens.values[i]);
    list.named_count++;
  }
  qsort(list.claims, list.count, sizeof(NamedClaim), by_id_and_token);
  return list;
}

const char* outcome_of(AttemptLock lock) {
  switch (lock) {
    case AttemptLock::kLocked: return "accepted";
    case AttemptLock::kBusy: return "busy";
    default: return nullptr;
  }
}

void answer_claims(ClaimList* list, const ArgumentArray& job_ids, const char* repeats,
                   FunctionCallInfo fcinfo) {
  auto* results = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
  auto** outcomes = static_cast<const char**>(palloc(sizeof(char*) * Max(list->count, 1)));
  for (int i = 0; i < list->count; i++) {
    const NamedClaim& claim = list->claims[i];
    const char* outcome = claim.is_named ? claim.outcome : "stale";
    outcomes[claim.position] = outcome ? outcome : late_outcome(claim, repeats);
  }
  for (int i = 0; i < list->count; i++) {
    NullableDatum job_id = job_ids.at(i);
    Datum values[] = {job_id.value, CStringGetTextDatum(outcomes[i])};
    bool nulls[] = {job_id.isnull, false};
    tuplestore_putvalues(results->setResult, results->setDesc, values, nulls);
  }
}

}  // namespace pulse
