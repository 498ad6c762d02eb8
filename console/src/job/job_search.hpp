// Jobs of a filter, page by page: live and ended jobs, the newest first, or jobs that ended without
// success, the last end first.
#pragma once

#include "database/database.hpp"
#include "job/job_filter.hpp"
#include "output/columns.hpp"

namespace pulse::console {

// Ready and parked jobs have a state for both: jobs that are due, and jobs that are due later.
enum class Due { any, now, later };

struct JobSearch {
  JobFilter filter;
  Due due = Due::any;
  std::optional<std::string> before;  // only jobs with a lower id
  bool is_by_end = false;             // ended jobs, by the times of their ends
  // Of a search by ends: only jobs that ended earlier, or at this time with an id below `before`.
  std::optional<std::string> before_end = std::nullopt;
  int limit = 50;
};

struct FoundJobs {
  // Fields of kFoundColumns, and created_epoch and finished_epoch: the times in seconds.
  QueryResult rows;
  std::optional<std::string> next;  // `before` of the next search
  std::optional<std::string> next_end;

  // Whether the search stopped before the search had read all jobs.
  bool is_cut(const JobSearch& search) const {
    return next && rows.size() < static_cast<std::size_t>(search.limit);
  }
};

// Tells a reader that more jobs than the search found may meet the filter: for is_cut().
const char* clause_of_cut(const JobSearch& search);

extern const Columns kFoundColumns;

FoundJobs find_jobs(Database& database, const JobSearch& search);

}  // namespace pulse::console
