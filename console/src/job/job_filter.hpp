// The filter that says which jobs a command or a page is about.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/postgres/statement.hpp"

namespace pulse::console {

struct JobFilter {
  std::vector<std::string> states;
  std::optional<std::string> task;
  std::optional<std::string> queue;
  std::optional<std::string> key;
  std::optional<std::string> error;       // a part of it
  std::optional<std::string> error_line;  // the line that tells most, whole
  std::optional<std::string> older_than;  // intervals
  std::optional<std::string> newer_than;

  bool is_empty() const;
  // The conditions beside the states: "whose task is mail and queue is post"; empty without any.
  std::string conditions() const;
  // The same filter as of a moment so long ago: jobs added since do not meet the filter.
  JobFilter as_of(std::chrono::milliseconds ago) const;
  // The first eight parameters of list_jobs() and of other functions that take a filter.
  Params params() const;
};

// The filter and the ids as the JSON that the server's functions about operations take. Without ids
// the JSON is about each job that meets the filter; an empty list of ids is about no job.
std::string filter_document(const JobFilter& filter,
                            const std::optional<std::vector<std::string>>& ids);

// The server's interval for "500ms", "5s", "10min", "2h" or "3d"; nothing for another text.
std::optional<std::string> interval_of(const std::string& duration);

}  // namespace pulse::console
