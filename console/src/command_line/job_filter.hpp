// Which jobs a command is about, as options say it.
#pragma once

#include <CLI/CLI.hpp>
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
  std::optional<std::string> older_than;
  std::optional<std::string> newer_than;

  bool is_empty() const;
  // The first seven parameters of list_jobs and of what else takes a filter.
  Params params() const;
};

void add_filter_options(CLI::App& command, JobFilter& filter);

// The interval that "500ms", "5s", "10min", "2h" or "3d" is for the server; nothing for what is
// none.
std::optional<std::string> interval_of(const std::string& duration);

// For an option that is one; what it stores is the interval.
CLI::Validator is_duration();

// For an option that is an id.
CLI::Validator is_id();

}  // namespace pulse::console
