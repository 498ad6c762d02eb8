// Live and ended jobs that meet a filter, the newest first, page by page.
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
  int limit = 50;
};

struct FoundJobs {
  QueryResult rows;
  std::optional<std::string> next;  // `before` of the next search

  // Whether the search stopped before the search had read all jobs.
  bool is_cut(const JobSearch& search) const {
    return next && rows.size() < static_cast<std::size_t>(search.limit);
  }
};

extern const Columns kFoundColumns;

FoundJobs find_jobs(Database& database, const JobSearch& search);

}  // namespace pulse::console
