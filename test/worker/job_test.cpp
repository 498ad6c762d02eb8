// What the server hands over as a job.
#include <gtest/gtest.h>

#include <stdexcept>

#include "jobs/job.hpp"
#include "server_answers.hpp"

namespace pulse {
namespace {

Job with_run_at(const std::string& text) {
  const QueryResult rows = claimed({{.id = 1}});
  std::vector<std::string> columns{
      "id",          "token",      "identifier",    "payload", "queue_name",    "priority",
      "run_at",      "attempts",   "max_attempts",  "crashes", "job_key",       "flags",
      "checkpoint",  "last_error", "recovered",     "timeout", "stall_timeout", "on_unreachable",
      "has_handler", "created_at", "scheduled_for", "parents", "traceparent"};
  std::vector<QueryResult::Cell> cells;
  for (const std::string& column : columns) {
    cells.push_back(column == "run_at" ? text : rows[0].optional_text(column));
  }
  return job_of(QueryResult(columns, cells)[0]);
}

TEST(JobTest, a_time_comes_without_its_quotes) {
  EXPECT_EQ(with_run_at(R"("2026-01-01T00:00:00+00:00")").input.run_at,
            "2026-01-01T00:00:00+00:00");
}

TEST(JobTest, a_job_of_a_schedule_has_its_due_time) {
  EXPECT_EQ(
      job_of(claimed({{.scheduled_for = R"("2026-01-01T06:00:00+00:00")"}})[0]).input.scheduled_for,
      "2026-01-01T06:00:00+00:00");
  EXPECT_EQ(job_of(claimed({{.id = 1}})[0]).input.scheduled_for, std::nullopt);
}

TEST(JobTest, a_job_after_others_has_their_ends_as_they_are_written) {
  const std::string ends = R"([{"id": 7, "result": 1.50}])";
  EXPECT_EQ(job_of(claimed({{.parents = ends}})[0]).input.parents_json, ends);
  QueryResult rows = claimed({{.parents = ends}});
  EXPECT_EQ(take_job(rows, 0).input.parents_json, ends);
  EXPECT_EQ(job_of(claimed({{.id = 1}})[0]).input.parents_json, std::nullopt);
}

TEST(JobTest, a_job_of_a_trace_has_its_traceparent_and_the_id_of_the_trace) {
  const std::string parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  const TaskInput input = job_of(claimed({{.traceparent = parent}})[0]).input;
  EXPECT_EQ(input.traceparent, parent);
  EXPECT_EQ(input.trace_id(), "4bf92f3577b34da6a3ce929d0e0e4736");
  const TaskInput other = job_of(claimed({{.id = 1}})[0]).input;
  EXPECT_EQ(other.traceparent, std::nullopt);
  EXPECT_EQ(other.trace_id(), "");
}

TEST(JobTest, what_is_escaped_is_read_as_json) {
  EXPECT_EQ(with_run_at(R"("2026\u002d01")").input.run_at, "2026-01");
}

TEST(JobTest, what_is_no_string_comes_from_another_version) {
  EXPECT_THROW(with_run_at("17"), std::runtime_error);
  EXPECT_THROW(with_run_at("\""), std::runtime_error);
}

}  // namespace
}  // namespace pulse
