// How many jobs there are in each state.
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

  // "12,345"; of a part "999+", or "1,000+" for more.
  std::string text() const;
};

// Counts jobs that meet the conditions of the filter beside the states: due, scheduled, parked,
// running, completed, failed, quarantined, cancelled, expired.
std::vector<StateCount> count_states(Database& database, const JobFilter& filter);

// Adds the counts of another database.
void add_counts(std::vector<StateCount>& sum, const std::vector<StateCount>& counts);

}  // namespace pulse::console
