// A claimed job as the server hands it over.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "database/query_result.hpp"
#include "liveness/registration.hpp"
#include "liveness/reported_claims.hpp"
#include "loop/duration.hpp"

namespace pulse {

// One claimed job as its task sees it. Times are text in ISO 8601, as the database gave them;
// *_json is JSON text and is passed on as it is.
struct TaskInput {
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
  std::optional<std::string> recovered;  // how the last attempt was lost, if it was
  std::int64_t worker_id = 0;
  std::string worker_name;
  std::optional<std::string> checkpoint_json;
  std::optional<std::string> payload_json;
  std::optional<std::string> parents_json;  // how the jobs ended that it waited for
  std::optional<std::string> traceparent;   // of W3C Trace Context, checked by the server

  // Its second part, for logs; empty without a trace.
  std::string trace_id() const;
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

// How long its task may run on after the last sign of life of its worker: one that is to be killed
// ends while its claim is certainly still ours, any other when the worker may count as lost.
inline Duration task_silence_limit(const Job& job, const Registration& registration) {
  return job.on_unreachable == OnUnreachable::kill ? registration.silence_limit()
                                                   : registration.sweep_threshold;
}

// The limits in a row of claim(), held() or task_limits().
void take_limits(Job& job, const QueryResult::Row& row);

// One row of claim() or held(). The worker's id and name are not in the row.
Job job_of(const QueryResult::Row& row);
// The same without a copy of what may be long: the row loses it.
Job take_job(QueryResult& rows, std::size_t number);

}  // namespace pulse
