#include "job/state_counts.hpp"

#include <algorithm>
#include <array>

#include "text/spelling.hpp"

namespace pulse::console {
namespace {

constexpr std::int64_t kMaxStateCount = 1000;

// The statement counts ended jobs among the last 5,000 that did not complete, and the newest
// completed jobs.
constexpr const char* kCountAll =
    "WITH o AS MATERIALIZED (SELECT ready, future + parked_future AS later,"
    " parked_full + parked_paused + parked_waiting AS parked, running, estimated"
    " FROM pulse.overview),"
    " e AS MATERIALIZED (SELECT state::text AS state, count(*) OVER () >= 5000 AS is_cut"
    " FROM (SELECT j.state FROM pulse.ended_jobs AS j ORDER BY j.finished_at DESC LIMIT 5000) AS j)"
    " SELECT 'due' AS name, ready AS jobs, estimated && '{ready}' AS is_cut FROM o"
    " UNION ALL SELECT 'scheduled', later, estimated && '{future,parked_future}' FROM o"
    " UNION ALL SELECT 'parked', parked,"
    " estimated && '{parked_full,parked_paused,parked_waiting}' FROM o"
    " UNION ALL SELECT 'running', running, estimated && '{running}' FROM o"
    " UNION ALL SELECT 'completed', count(l.state), bool_or(l.state IS NULL)"
    " FROM pulse.list_jobs('{completed}', max_rows => 1000) AS l"
    " UNION ALL SELECT state, count(*), bool_or(is_cut) FROM e GROUP BY state"
    " UNION ALL SELECT 'cut', 0, true FROM e GROUP BY is_cut HAVING is_cut";

constexpr const char* kCountFiltered =
    "SELECT CASE WHEN s.state <> 'ready' THEN s.state WHEN l.run_at > pulse.now() THEN 'scheduled'"
    " ELSE 'due' END AS name, count(l.state) AS jobs,"
    " bool_or(l.state IS NULL) OR count(*) >= 1000 AS is_cut"
    " FROM unnest($1::text[]) AS s (state), LATERAL pulse.list_jobs(ARRAY[s.state], $2, $3, $4, $5,"
    " $6, $7::interval, $8::interval, NULL, 1000) AS l GROUP BY 1";

constexpr std::array<const char*, 9> kStateNames{"due",         "scheduled", "parked",
                                                 "running",     "completed", "failed",
                                                 "quarantined", "cancelled", "expired"};

bool has_condition(const JobFilter& filter) {
  JobFilter conditions = filter;
  conditions.states.clear();
  return !conditions.is_empty();
}

Params all_states_of(const JobFilter& filter) {
  Params params = filter.params();
  params[0] = "{ready,parked,running,completed,failed,quarantined,cancelled,expired}";
  return params;
}

}  // namespace

std::string StateCount::text() const {
  const std::int64_t shown = std::min(jobs, kMaxStateCount);
  return spell_count(std::to_string(shown)) + (jobs >= kMaxStateCount || !is_exact ? "+" : "");
}

std::vector<StateCount> count_states(Database& database, const JobFilter& filter) {
  const QueryResult rows = has_condition(filter)
                               ? database.query(kCountFiltered, all_states_of(filter))
                               : database.query(kCountAll);
  std::vector<StateCount> counts;
  for (const char* name : kStateNames) counts.push_back({name});
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const bool is_cut = rows[i].optional_text("is_cut").value_or("f") == "t";
    for (StateCount& count : counts) {
      // Where the search stopped, a state that did not come up may have jobs all the same.
      const bool is_ended = count.name == "failed" || count.name == "quarantined" ||
                            count.name == "cancelled" || count.name == "expired";
      if (rows[i].text("name") == "cut" && is_ended) count.is_exact = false;
      if (rows[i].text("name") != count.name) continue;
      count.jobs = rows[i].optional_integer("jobs").value_or(0);
      count.is_exact = count.is_exact && !is_cut;
    }
  }
  return counts;
}

}  // namespace pulse::console
