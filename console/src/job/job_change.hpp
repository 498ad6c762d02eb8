// A change of many jobs, as an operation of the database: the preview of the change, and the start.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "database/database.hpp"
#include "job/job_filter.hpp"
#include "output/columns.hpp"

namespace pulse::console {

struct JobChange {
  std::string action;
  JobFilter filter;
  std::vector<std::string> ids;
  bool is_all = false;  // without ids: every job that meets the filter, which may be empty

  bool is_by_id() const { return !ids.empty(); }
  // A change about every job has to say so: no ids and no filter alone may mean all jobs.
  bool says_which() const { return is_by_id() || !filter.is_empty() || is_all; }
  // The filter for the server. A change that does not say which jobs is about no job.
  std::string document() const;
};

// Whether an operation of this action changes jobs, or undoes such a change.
bool is_change_of_jobs(std::string_view action);

struct ChangePreview {
  std::int64_t jobs;
  bool is_exact;  // false: there may be more
  std::vector<std::string> sample_ids;

  bool is_of_none() const { return jobs == 0 && is_exact; }
};

// The jobs of the change, and their database: "all 99 waiting jobs of shop whose task is mail".
std::string subject(const JobChange& change, const ChangePreview& preview,
                    const std::string& database);

ChangePreview preview_change(Database& database, const JobChange& change);

// The first of the jobs that would change.
const Columns& sample_columns();
QueryResult read_sample(Database& database, const ChangePreview& preview);

// Returns the id of the operation, which has run no step yet. arguments: a JSON object; actor: for
// the record, the person or token behind the role.
std::string start_change(Database& database, const JobChange& change, const std::string& arguments,
                         const std::string& actor);

}  // namespace pulse::console
