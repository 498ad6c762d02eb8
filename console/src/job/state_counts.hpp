// How many jobs there are in each state, up to a bound.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "database/database.hpp"
#include "job/job_filter.hpp"

namespace pulse::console {

struct StateCount {
  std::string name;  // a state, or due or scheduled
  std::int64_t jobs = 0;
  bool is_exact = true;  // false: at least so many

  // "999", or "1,000+".
  std::string text() const;
};

// Counts jobs that meet the conditions of the filter beside the states: due, scheduled, parked,
// running, completed, failed, quarantined, cancelled, expired. A count stops at 1,000; without a
// condition the function reads the figures of the overview, which are cheap beside millions of
// jobs.
std::vector<StateCount> count_states(Database& database, const JobFilter& filter);

}  // namespace pulse::console
