// A claimed job, as the server hands it over.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/loop/duration.hpp"
#include "base/postgres/query_result.hpp"
#include "liveness/registration.hpp"
#include "liveness/reported_claims.hpp"

namespace pulse {

// One claimed job as the task sees it. Times are text in ISO 8601, as the database gave them;
// *_json is JSON text and is passed on unchanged.
struct TaskInput {
  std::string database;  // the name of the job's database; empty where the database has no name
  std::int64_t job_id = 0;
  std::int64_t token = 0;
  std::string identifier;
  int attempt = 1;  // counts from 1
  int max_attempts = 1;
  int crashes = 0;
  int priority = 0;
  std::string run_at;
  std::string created_at;
  std::optional<std::string> scheduled_for;
  std::optional<std::string> queue_name;
  std::optional<std::string> job_key;
  std::vector<std::string> flags;
  std::optional<std::string> last_error;
  std::optional<std::string> recovered;  // how the last attempt was lost, if it was lost
  std::int64_t worker_id = 0;
  std::string worker_name;
  std::optional<std::string> checkpoint_json;
  std::optional<std::string> payload_json;
  std::optional<std::string> parents_json;  // the ends of the jobs that this job waited for
  std::optional<std::string> traceparent;   // of W3C Trace Context, checked by the server

  // The second part of `traceparent`, for logs; empty without a trace.
  std::string trace_id() const;
};

// How a running task fares while the database cannot be reached.
enum class OnUnreachable { keep_running, kill };

struct Job {
  TaskInput input;  // the job as the task is told
  std::optional<Duration> timeout;
  std::optional<Duration> stall_timeout;
  OnUnreachable on_unreachable = OnUnreachable::keep_running;
  bool has_handler = false;  // the task is a function of the database

  ClaimKey key() const { return {input.job_id, input.token}; }
};

// How long a task may run on after the last sign of life of the worker. A task that is to be killed
// ends while the claim is certainly still this worker's; any other task ends when the server may
// count the worker as lost.
inline Duration task_silence_limit(const Job& job, const Registration& registration) {
  return job.on_unreachable == OnUnreachable::kill ? registration.silence_limit()
                                                   : registration.sweep_threshold;
}

// The limits in a row of claim(), held() or task_limits().
void take_limits(Job& job, const QueryResult::Row& row);

// One row of claim() or held(). The worker's id and name are not in the row.
Job job_of(const QueryResult::Row& row);
// The same without a copy of the long texts: the row loses `payload`, `checkpoint` and `parents`.
Job take_job(QueryResult& rows, std::size_t number);

}  // namespace pulse
