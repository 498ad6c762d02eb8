#include "job/state_counts.hpp"

#include <algorithm>
#include <array>

#include "text/spelling.hpp"

namespace pulse::console {
namespace {

// Beyond so many a part tells only how far the server has read.
constexpr std::int64_t kMaxPartialCount = 1000;

constexpr const char* kCount =
    "SELECT state, jobs, is_exact"
    " FROM pulse.count_jobs($1, $2, $3, $4, $5, $6::interval, $7::interval)";

constexpr std::array<const char*, 9> kStateNames{"due",         "scheduled", "parked",
                                                 "running",     "completed", "failed",
                                                 "quarantined", "cancelled", "expired"};

StateCount& count_of(std::vector<StateCount>& counts, std::string_view state) {
  return *std::find_if(counts.begin(), counts.end(),
                       [&](const StateCount& count) { return count.name == state; });
}

}  // namespace

std::string StateCount::text() const {
  if (is_exact) return spell_count(std::to_string(jobs));
  return spell_count(std::to_string(std::min(jobs, kMaxPartialCount))) + "+";
}

std::vector<StateCount> count_states(Database& database, const JobFilter& filter) {
  std::vector<StateCount> counts;
  for (const char* name : kStateNames) counts.push_back({name});
  Params conditions = filter.params();
  conditions.erase(conditions.begin());  // the states
  const QueryResult rows = database.query(kCount, conditions);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    StateCount& count = count_of(counts, rows[i].text("state"));
    count.jobs = rows[i].optional_integer("jobs").value_or(0);
    count.is_exact = rows[i].text("is_exact") == "t";
  }
  return counts;
}

void add_counts(std::vector<StateCount>& sum, const std::vector<StateCount>& counts) {
  if (sum.empty()) {
    sum = counts;
    return;
  }
  for (const StateCount& count : counts) {
    StateCount& whole = count_of(sum, count.name);
    whole.jobs += count.jobs;
    whole.is_exact = whole.is_exact && count.is_exact;
  }
}

}  // namespace pulse::console
