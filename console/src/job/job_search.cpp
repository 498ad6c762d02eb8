#include "job/job_search.hpp"

#include <chrono>

namespace pulse::console {
namespace {

constexpr const char* kJobs =
    "SELECT id, state, identifier, queue_name, priority, attempts, max_attempts, crashes, job_key,"
    " worker_id, run_at, created_at, claimed_at, finished_at, progress, last_error"
    " FROM pulse.list_jobs($1::text[], $2, $3, $4, $5, $6::interval, $7::interval, $8::bigint,"
    " $9::int)";

}  // namespace

const Columns kFoundColumns{
    {"job", "id", Kind::id},
    {"task", "identifier", Kind::text, 30},
    {"state", "state", Kind::state},
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

// A call looks at a bounded number of jobs, so one that found too few is repeated, for a moment.
FoundJobs find_jobs(Database& database, const JobSearch& search) {
  constexpr auto kPatience = std::chrono::milliseconds(200);
  const auto start = std::chrono::steady_clock::now();
  FoundJobs found{QueryResult(), search.before};
  std::vector<QueryResult::Cell> cells;
  std::vector<std::string> names;
  for (const Column& column : kFoundColumns) names.push_back(column.field);
  int left = search.limit;
  for (bool has_more = true; has_more && left > 0;) {
    Params params = search.filter.params();
    params.insert(params.end(), {found.next, std::to_string(left)});
    const QueryResult rows = database.query(kJobs, params);
    found.next.reset();
    has_more = false;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const bool is_job = !rows[i].is_null("state");
      if (!is_job || left == 1) found.next = rows[i].text("id");
      if (!is_job) {
        has_more = std::chrono::steady_clock::now() - start < kPatience;
        break;
      }
      --left;
      for (const std::string& name : names) cells.push_back(rows[i].optional_text(name));
    }
  }
  found.rows = QueryResult(std::move(names), std::move(cells));
  return found;
}

}  // namespace pulse::console
