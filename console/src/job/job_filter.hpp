// Which jobs a command or a page is about.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "database/statement.hpp"

namespace pulse::console {

struct JobFilter {
  std::vector<std::string> states;
  std::optional<std::string> task;
  std::optional<std::string> queue;
  std::optional<std::string> key;
  std::optional<std::string> error;
  std::optional<std::string> older_than;  // intervals
  std::optional<std::string> newer_than;

  bool is_empty() const;
  // The first seven parameters of list_jobs and of what else takes a filter.
  Params params() const;
};

// The jobs that a command names, as the server's functions about operations take them.
std::string filter_document(const JobFilter& filter, const std::vector<std::string>& ids);

// The interval that "500ms", "5s", "10min", "2h" or "3d" is for the server; nothing for what is
// none.
std::optional<std::string> interval_of(const std::string& duration);

}  // namespace pulse::console
