// QueryResult as the functions of the server return them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/postgres/query_result.hpp"

namespace pulse {

struct GivenJob {
  std::int64_t id = 1;
  std::int64_t token = 100;
  std::string identifier = "mail";
  int attempts = 1;
  std::optional<std::string> timeout = std::nullopt;        // seconds
  std::optional<std::string> stall_timeout = std::nullopt;  // seconds
  std::string on_unreachable = "continue";
  bool has_handler = false;
  std::optional<std::string> queue_name = std::nullopt;
  std::optional<std::string> scheduled_for = std::nullopt;  // JSON
  std::string payload = R"({"n":1})";
  std::optional<std::string> parents = std::nullopt;
  std::optional<std::string> traceparent = std::nullopt;
};

inline QueryResult claimed(const std::vector<GivenJob>& jobs) {
  std::vector<QueryResult::Cell> cells;
  for (const GivenJob& job : jobs) {
    const std::vector<QueryResult::Cell> row{std::to_string(job.id),
                                             std::to_string(job.token),
                                             job.identifier,
                                             job.payload,
                                             job.queue_name,
                                             "0",
                                             R"("2026-01-01T00:00:00+00:00")",
                                             std::to_string(job.attempts),
                                             "25",
                                             "0",
                                             std::nullopt,
                                             R"(["a","b"])",
                                             std::nullopt,
                                             std::nullopt,
                                             std::nullopt,
                                             job.timeout,
                                             job.stall_timeout,
                                             job.on_unreachable,
                                             job.has_handler ? "t" : "f",
                                             R"("2026-01-01T00:00:00+00:00")",
                                             job.scheduled_for,
                                             job.parents,
                                             job.traceparent};
    cells.insert(cells.end(), row.begin(), row.end());
  }
  return QueryResult(
      {"id",          "token",      "identifier",    "payload", "queue_name",    "priority",
       "run_at",      "attempts",   "max_attempts",  "crashes", "job_key",       "flags",
       "checkpoint",  "last_error", "recovered",     "timeout", "stall_timeout", "on_unreachable",
       "has_handler", "created_at", "scheduled_for", "parents", "traceparent"},
      std::move(cells));
}

// Interval 5 s, threshold 20 s: a margin of 7.25 s and a silence limit of 12.75 s, with sweeps
// every 5 s as well as without any.
inline QueryResult registered(std::int64_t worker_id,
                              const std::string& sweep_interval = "-1.000000",
                              const std::string& sweep_threshold = "20.000000") {
  return QueryResult(
      {"id", "heartbeat_interval", "sweep_threshold", "sweep_interval", "poll_interval"},
      {std::to_string(worker_id), "5.000000", sweep_threshold, sweep_interval, "1.000000"});
}

// A JSON array of names.
inline QueryResult handler_tasks(const std::string& names = "[]") {
  return QueryResult({"tasks"}, {names});
}

inline QueryResult beat(const std::string& status = "alive", const std::string& revoked = "{}",
                        const std::string& cancelled = "{}",
                        const QueryResult::Cell& background = "off") {
  return QueryResult({"status", "revoked", "cancelled", "background_sweeps"},
                     {status, revoked, cancelled, background});
}

// {{1, "accepted"}, …}
inline QueryResult outcomes(const std::vector<std::pair<std::int64_t, std::string>>& answers) {
  std::vector<QueryResult::Cell> cells;
  for (const auto& [id, outcome] : answers) {
    cells.emplace_back(std::to_string(id));
    cells.emplace_back(outcome);
  }
  return QueryResult({"id", "outcome"}, std::move(cells));
}

inline QueryResult swept(int recovered, int workers_lost = 0) {
  return QueryResult({"workers_lost", "jobs_requeued", "jobs_failed", "jobs_quarantined",
                      "jobs_timed_out", "jobs_stalled", "jobs_skipped_locked", "skipped_time"},
                     {std::to_string(workers_lost), std::to_string(recovered), "0", "0", "0", "0",
                      "0", "0.000000"});
}

inline QueryResult nothing() { return QueryResult({"ignored"}, {}); }
inline QueryResult done() { return QueryResult({"ignored"}, {std::string()}); }

}  // namespace pulse
