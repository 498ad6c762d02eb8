// A claimed job as the server hands it over.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "database/query_result.hpp"
#include "executable/task_environment.hpp"
#include "loop/duration.hpp"

namespace pulse {

// Names one claim. The same job claimed again has another token: the earlier claim is then over.
struct ClaimKey {
  std::int64_t job_id = 0;
  std::int64_t token = 0;
  auto operator<=>(const ClaimKey&) const = default;
};

// What becomes of a running task while the database cannot be reached.
enum class OnUnreachable { keep_running, kill };

struct Job {
  TaskInput input;  // what its task is told
  std::optional<Duration> timeout;
  std::optional<Duration> stall_timeout;
  OnUnreachable on_unreachable = OnUnreachable::keep_running;
  bool has_handler = false;  // its task is a function of the database

  ClaimKey key() const { return {input.job_id, input.token}; }
};

// The strings of a JSON array; none for NULL.
std::vector<std::string> json_strings(const QueryResult::Cell& text);

// One row of claim() or held(). The worker's id and name are not in the row.
Job job_of(const QueryResult::Row& row);

}  // namespace pulse
