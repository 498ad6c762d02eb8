// A change of many jobs, as an operation of the database: its preview, and its start.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "database/database.hpp"
#include "job/job_filter.hpp"
#include "output/columns.hpp"

namespace pulse::console {

struct JobChange {
  std::string action;
  JobFilter filter;
  std::vector<std::string> ids;  // empty: the jobs of the filter

  std::string document() const { return filter_document(filter, ids); }
};

struct ChangePreview {
  std::int64_t jobs;
  bool is_exact;  // false: there may be more
  std::vector<std::string> sample_ids;

  bool is_of_none() const { return jobs == 0 && is_exact; }
  // Retry 3 jobs?
  std::string question(const std::string& action) const;
};

ChangePreview preview_change(Database& database, const JobChange& change);

// The first of the jobs that would change.
const Columns& sample_columns();
QueryResult read_sample(Database& database, const ChangePreview& preview);

// Returns the id of the operation, which has run no step yet. arguments: a JSON object; actor: for
// the record, the person or token behind the role.
std::string start_change(Database& database, const JobChange& change, const std::string& arguments,
                         const std::string& actor);

}  // namespace pulse::console
