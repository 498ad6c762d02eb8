// Counts of which the server saw a part. A person reads a plus behind such a count; for each list
// this file decides which counts have one.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>

#include "base/postgres/query_result.hpp"

namespace pulse::console {

struct PartialCount {
  std::int64_t jobs = 0;
  bool is_part = false;  // at least so many

  // "1234", or "1234+": the value of a column of counts.
  std::string value() const;
  // "1,234", or "1,234+".
  std::string text() const;
};

// The sum of fields of a row of pulse.overview, whose field `estimated` (an array as JSON) names
// the counts that are not exact.
PartialCount sum_of(const QueryResult::Row& overview, std::initializer_list<const char*> fields);

// Columns of an SQL statement over rows of pulse.stats(): a plus or nothing. `plus` is for ready
// (open) and future jobs of a task of which the server has not read each waiting job; where no
// commit counts, all counts may be parts. Counts that add up and are estimated wait for a recount.
#define PULSE_PLUSES                                                                       \
  "CASE WHEN estimated THEN '+' ELSE '' END AS plus,"                                      \
  " CASE WHEN estimated AND (ready + coalesce(future, 0) + parked = waiting) IS NOT FALSE" \
  " THEN '+' ELSE '' END AS plus_of_all"

// Columns of a list that joins such rows, as s, with further names: a name without a row has no
// jobs, or is among the further names that the row without a name adds up. Such a name has at least
// no jobs.
#define PULSE_HAS_MORE "bool_or(s.kind IS NOT NULL AND s.name IS NULL) OVER ()"
#define PULSE_COUNT_OF(count) "CASE WHEN s.kind IS NULL THEN 0 ELSE s." count " END"
#define PULSE_PLUS_OF(plus) \
  "CASE WHEN s.kind IS NULL AND " PULSE_HAS_MORE " THEN '+' ELSE coalesce(s." plus ", '') END"

// For how long the oldest due job of such a row has been due; "?" where the call does not know.
#define PULSE_OLDEST_AGE                                      \
  "CASE WHEN coalesce(s.oldest_is_known, NOT " PULSE_HAS_MORE \
  ") THEN extract(epoch FROM s.oldest_due_age)::text ELSE '?' END"

}  // namespace pulse::console
