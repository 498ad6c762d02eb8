#include "job/job_search.hpp"

#include "job/shown_state.hpp"

namespace pulse::console {
namespace {

constexpr const char* kJobs =
    "SELECT id, state, identifier, queue_name, priority, attempts, max_attempts, crashes, job_key,"
    " worker_id, run_at, created_at, claimed_at, finished_at, progress, last_error, "
    PULSE_SHOWN_STATE("state", "run_at")
    " FROM pulse.list_jobs($1::text[], $2, $3, $4, $5, $6::interval, $7::interval, $8::bigint,"
    " $9::int)";

}  // namespace

const Columns kFoundColumns{
    {"job", "id", Kind::id},
    {"task", "identifier", Kind::text, 30},
    {"", "state", Kind::state},
    {"state", "shown_state", Kind::state},
    {"queue", "queue_name", Kind::text, 24},
    {"attempts", "attempts", Kind::number},
    {"of", "max_attempts", Kind::number},
    {"crashes", "crashes", Kind::number},
    {"priority", "priority", Kind::number},
    {"key", "job_key", Kind::text, 24},
    {"due", "run_at", Kind::time},
    {"", "created_at", Kind::time},
    {"", "claimed_at", Kind::time},
    {"ended", "finished_at", Kind::time},
    {"", "worker_id", Kind::id},
    {"progress", "progress", Kind::part},
    {"last error", "last_error", Kind::text, 60},
};

// A call looks at a bounded number of jobs, however many there are; it says where the next goes on.
FoundJobs find_jobs(Database& database, const JobSearch& search) {
  Params params = search.filter.params();
  params.insert(params.end(), {search.before, std::to_string(search.limit)});
  const QueryResult rows = database.query(kJobs, params);
  FoundJobs found;
  std::vector<QueryResult::Cell> cells;
  std::vector<std::string> names;
  for (const Column& column : kFoundColumns) names.push_back(column.field);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const bool is_job = !rows[i].is_null("state");
    if (!is_job || i + 1 == static_cast<std::size_t>(search.limit)) found.next = rows[i].text("id");
    if (!is_job) break;
    for (const std::string& name : names) cells.push_back(rows[i].optional_text(name));
  }
  found.rows = QueryResult(std::move(names), std::move(cells));
  return found;
}

}  // namespace pulse::console
