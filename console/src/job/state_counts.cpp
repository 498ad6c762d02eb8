#include "job/state_counts.hpp"

#include <algorithm>
#include <array>

#include "output/partial_count.hpp"
#include "text/spelling.hpp"

namespace pulse::console {
namespace {

constexpr std::int64_t kMaxStateCount = 1000;

constexpr const char* kCountLive =
    "SELECT ready, future, parked_full, parked_paused, parked_future, parked_waiting, running,"
    " to_json(estimated) AS estimated FROM pulse.overview";

// Ended jobs among the last 5,000 that did not complete, and the newest completed jobs.
constexpr const char* kCountEnded =
    "WITH e AS MATERIALIZED (SELECT state::text AS state, count(*) OVER () >= 5000 AS is_cut"
    " FROM (SELECT j.state FROM pulse.ended_jobs AS j ORDER BY j.finished_at DESC LIMIT 5000) AS j)"
    " SELECT 'completed' AS name, count(l.state) AS jobs, bool_or(l.state IS NULL) AS is_cut"
    " FROM pulse.list_jobs('{completed}', max_rows => 1000) AS l"
    " UNION ALL SELECT state, count(*), bool_or(is_cut) FROM e GROUP BY state"
    " UNION ALL SELECT 'cut', 0, true FROM e GROUP BY is_cut HAVING is_cut";

// A tab counts the jobs that its list has: parked jobs that are due later stand in two lists.
constexpr const char* kCountFiltered =
    "WITH l AS MATERIALIZED (SELECT s.state AS listed, l.state, l.run_at > pulse.now() AS is_later"
    " FROM unnest($1::text[]) AS s (state), LATERAL pulse.list_jobs(ARRAY[s.state], $2, $3, $4, $5,"
    " $6, $7::interval, $8::interval, NULL, 1000) AS l),"
    " cut AS (SELECT listed, bool_or(state IS NULL) OR count(*) >= 1000 AS is_cut FROM l"
    " GROUP BY listed),"
    " tab AS (SELECT s.state AS listed, CASE WHEN s.state = 'ready' THEN 'due' ELSE s.state END AS"
    " name, CASE WHEN s.state = 'ready' THEN false END AS is_later FROM unnest($1::text[]) AS s"
    " (state) UNION ALL SELECT s.state, 'scheduled', true FROM unnest('{ready,parked}'::text[]) AS"
    " s (state))"
    " SELECT t.name, count(l.state) AS jobs, bool_or(c.is_cut) AS is_cut"
    " FROM tab AS t JOIN cut AS c USING (listed) LEFT JOIN l ON l.listed = t.listed"
    " AND (t.is_later IS NULL OR l.is_later = t.is_later) GROUP BY t.name";

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

StateCount& count_of(std::vector<StateCount>& counts, std::string_view state) {
  return *std::find_if(counts.begin(), counts.end(),
                       [&](const StateCount& count) { return count.name == state; });
}

void note_live(std::vector<StateCount>& counts, const QueryResult::Row& overview) {
  const auto note = [&](const char* state, std::initializer_list<const char*> fields) {
    const PartialCount sum = sum_of(overview, fields);
    StateCount& count = count_of(counts, state);
    count.jobs = sum.jobs;
    count.is_exact = !sum.is_part;
  };
  note("due", {"ready"});
  note("scheduled", {"future", "parked_future"});
  note("parked", {"parked_full", "parked_paused", "parked_future", "parked_waiting"});
  note("running", {"running"});
}

void note_rows(std::vector<StateCount>& counts, const QueryResult& rows) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::string& name = rows[i].text("name");
    if (name == "cut") {
      // Where the search stopped, a state that did not come up may have jobs all the same.
      for (const char* state : {"failed", "quarantined", "cancelled", "expired"}) {
        count_of(counts, state).is_exact = false;
      }
      continue;
    }
    StateCount& count = count_of(counts, name);
    count.jobs = rows[i].optional_integer("jobs").value_or(0);
    count.is_exact = count.is_exact && rows[i].optional_text("is_cut").value_or("f") != "t";
  }
}

}  // namespace

std::string StateCount::text() const {
  const std::int64_t shown = std::min(jobs, kMaxStateCount);
  return spell_count(std::to_string(shown)) + (jobs >= kMaxStateCount || !is_exact ? "+" : "");
}

std::vector<StateCount> count_states(Database& database, const JobFilter& filter) {
  std::vector<StateCount> counts;
  for (const char* name : kStateNames) counts.push_back({name});
  if (has_condition(filter)) {
    note_rows(counts, database.query(kCountFiltered, all_states_of(filter)));
    return counts;
  }
  note_live(counts, database.query(kCountLive)[0]);
  note_rows(counts, database.query(kCountEnded));
  return counts;
}

}  // namespace pulse::console
