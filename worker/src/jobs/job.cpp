#include "jobs/job.hpp"

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

namespace pulse {
namespace {

// The content of a JSON string; a timestamp comes as JSON because JSON's timestamps are ISO 8601 in
// every session.
std::string json_string(const std::string& text) {
  const bool is_plain = text.size() >= 2 && text.front() == '"' && text.back() == '"' &&
                        text.find('\\') == std::string::npos;
  if (is_plain) return text.substr(1, text.size() - 2);
  const auto value = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!value.is_string()) throw std::runtime_error("the server returned no JSON string");
  return value.get<std::string>();
}

// Limits of zero or below are none.
std::optional<Duration> limit_of(const QueryResult::Row& row, std::string_view column) {
  const auto limit = row.optional_seconds(column);
  return limit && *limit > Duration::zero() ? limit : std::nullopt;
}

}  // namespace

std::string TaskInput::trace_id() const {
  constexpr std::size_t kBegin = 3;
  constexpr std::size_t kLength = 32;
  return traceparent && traceparent->size() > kBegin ? traceparent->substr(kBegin, kLength) : "";
}

void take_limits(Job& job, const QueryResult::Row& row) {
  job.timeout = limit_of(row, "timeout");
  job.stall_timeout = limit_of(row, "stall_timeout");
  job.on_unreachable = row.optional_text("on_unreachable") == "kill" ? OnUnreachable::kill
                                                                     : OnUnreachable::keep_running;
}

Job job_of(const QueryResult::Row& row) {
  Job job;
  job.input.job_id = row.integer("id");
  job.input.token = row.integer("token");
  job.input.identifier = row.text("identifier");
  job.input.attempt = static_cast<int>(row.integer("attempts"));
  job.input.max_attempts = static_cast<int>(row.integer("max_attempts"));
  job.input.crashes = static_cast<int>(row.integer("crashes"));
  job.input.priority = static_cast<int>(row.integer("priority"));
  job.input.run_at = json_string(row.text("run_at"));
  job.input.created_at = json_string(row.text("created_at"));
  if (const auto due = row.optional_text("scheduled_for"))
    job.input.scheduled_for = json_string(*due);
  job.input.queue_name = row.optional_text("queue_name");
  job.input.job_key = row.optional_text("job_key");
  job.input.flags = json_strings(row.optional_text("flags"));
  job.input.last_error = row.optional_text("last_error");
  job.input.recovered = row.optional_text("recovered");
  job.input.checkpoint_json = row.optional_text("checkpoint");
  job.input.payload_json = row.optional_text("payload");
  job.input.parents_json = row.optional_text("parents");
  job.input.traceparent = row.optional_text("traceparent");
  take_limits(job, row);
  job.has_handler = row.optional_text("has_handler") == "t";
  return job;
}

Job take_job(QueryResult& rows, std::size_t number) {
  auto payload = rows.take(number, "payload");
  auto checkpoint = rows.take(number, "checkpoint");
  auto parents = rows.take(number, "parents");
  Job job = job_of(rows[number]);
  job.input.payload_json = std::move(payload);
  job.input.checkpoint_json = std::move(checkpoint);
  job.input.parents_json = std::move(parents);
  return job;
}

}  // namespace pulse
