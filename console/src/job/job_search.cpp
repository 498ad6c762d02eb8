#include "job/job_search.hpp"

#include "job/shown_state.hpp"

namespace pulse::console {
namespace {

#define PULSE_FOUND                                                                               \
  "SELECT id, state, identifier, queue_name, priority, attempts, max_attempts, crashes, job_key," \
  " worker_id, run_at, created_at, claimed_at, finished_at, progress, last_error,"                \
  " last_error_line, extract(epoch FROM created_at) AS created_epoch,"                            \
  " extract(epoch FROM finished_at) AS finished_epoch,"                                           \
  " finished_at IS NULL AND claimed_at IS NULL AND run_at > pulse.now() AS "                      \
  "is_later, " PULSE_SHOWN_STATE("state", "run_at")
#define PULSE_FILTER "$1::text[], $2, $3, $4, $5, $6, $7::interval, $8::interval"

constexpr const char* kJobs =
    PULSE_FOUND " FROM pulse.list_jobs(" PULSE_FILTER ", $9::bigint, $10::int)";
constexpr const char* kEndedJobs = PULSE_FOUND " FROM pulse.list_ended_jobs(" PULSE_FILTER
                                               ", $9::timestamptz, $10::bigint, $11::int)";

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
    {"", "last_error"},
    {"last error", "last_error_line", Kind::text, 60},
};

namespace {

bool is_wanted(const QueryResult::Row& job, Due due) {
  return due == Due::any ||
         (job.optional_text("is_later").value_or("f") == "t") == (due == Due::later);
}

}  // namespace

const char* clause_of_cut(const JobSearch& search) {
  return search.is_by_end
             ? "only the last ends were read, so earlier ones may meet the filter, too"
             : "only the newest jobs were read, so older ones may meet the filter, too";
}

// A call reads a bounded number of jobs, however many there are; the answer says where the next
// call goes on. The search picks jobs by their due time from kMaxCalls calls at most.
FoundJobs find_jobs(Database& database, const JobSearch& search) {
  constexpr int kMaxCalls = 5;
  constexpr int kPicked = 1000;
  const auto limit = static_cast<std::size_t>(search.limit);
  const int max_rows = search.due == Due::any ? search.limit : kPicked;
  FoundJobs found;
  std::vector<QueryResult::Cell> cells;
  std::vector<std::string> names;
  for (const Column& column : kFoundColumns) names.push_back(column.field);
  names.insert(names.end(), {"is_later", "created_epoch", "finished_epoch"});
  std::size_t count = 0;
  found.next = search.before;
  found.next_end = search.before_end;
  for (int call = 0; call < kMaxCalls && count < limit; ++call) {
    Params params = search.filter.params();
    if (search.is_by_end) params.push_back(found.next_end);
    params.insert(params.end(), {found.next, std::to_string(max_rows)});
    const QueryResult rows = database.query(search.is_by_end ? kEndedJobs : kJobs, params);
    found.next.reset();
    for (std::size_t i = 0; i < rows.size() && count < limit; ++i) {
      const bool is_job = !rows[i].is_null("state");
      const bool is_last_of_call = i + 1 == static_cast<std::size_t>(max_rows);
      if (is_job && is_wanted(rows[i], search.due)) {
        for (const std::string& name : names) cells.push_back(rows[i].optional_text(name));
        ++count;
      }
      if (is_job && !is_last_of_call && count < limit) continue;
      found.next = rows[i].text("id");
      found.next_end = rows[i].optional_text("finished_at");
    }
    if (!found.next) break;
  }
  found.rows = QueryResult(std::move(names), std::move(cells));
  return found;
}

}  // namespace pulse::console
