// Reading what the server returned.
#include "base/postgres/query_result.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

#include "jobs/job.hpp"
#include "server_answers.hpp"

namespace pulse {
namespace {

using namespace std::chrono_literals;

TEST(QueryResultTest, values_are_read_by_name_and_type) {
  const QueryResult rows({"id", "text", "none", "seconds", "ids"},
                         {"42", "words", std::nullopt, "1.250000", "{1,22,333}"});
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].integer("id"), 42);
  EXPECT_EQ(rows[0].text("text"), "words");
  EXPECT_TRUE(rows[0].is_null("none"));
  EXPECT_EQ(rows[0].optional_text("none"), std::nullopt);
  EXPECT_EQ(rows[0].number("seconds"), 1.25);
  EXPECT_EQ(rows[0].optional_number("none"), std::nullopt);
  EXPECT_EQ(rows[0].seconds("seconds"), 1250ms);
  EXPECT_EQ(rows[0].optional_seconds("none"), std::nullopt);
  EXPECT_EQ(rows[0].integers("ids"), (std::vector<std::int64_t>{1, 22, 333}));
  EXPECT_TRUE(rows[0].integers("none").empty());
}

TEST(QueryResultTest, an_interval_without_end_does_not_overflow) {
  const QueryResult rows({"seconds"}, {"9223372036854.775807"});
  EXPECT_LT(rows[0].seconds("seconds"), std::chrono::hours(24 * 366 * 40));
  EXPECT_GT(rows[0].seconds("seconds"), std::chrono::hours(24 * 365 * 30));
}

TEST(QueryResultTest, another_shape_than_expected_is_an_error) {
  const QueryResult rows({"id", "none"}, {"4x", std::nullopt});
  EXPECT_THROW((void)rows[0].integer("id"), std::runtime_error);
  EXPECT_THROW((void)rows[0].number("id"), std::runtime_error);
  EXPECT_THROW((void)rows[0].seconds("id"), std::runtime_error);
  EXPECT_THROW((void)rows[0].integers("id"), std::runtime_error);
  EXPECT_THROW((void)rows[0].text("none"), std::runtime_error);
  EXPECT_THROW((void)rows[0].text("missing"), std::runtime_error);
}

TEST(QueryResultTest, no_columns_means_no_rows) {
  EXPECT_TRUE(QueryResult().empty());
  EXPECT_TRUE(QueryResult({"id"}, {}).empty());
}

TEST(JobRow, a_claimed_job_keeps_what_its_task_is_told) {
  GivenJob given;
  given.id = 9;
  given.token = 1'099'511'627'777;
  given.timeout = "30.000000";
  given.on_unreachable = "kill";
  const Job job = job_of(claimed({given})[0]);
  EXPECT_EQ(job.key(), (ClaimKey{9, 1'099'511'627'777}));
  EXPECT_EQ(job.input.payload_json, R"({"n":1})");
  EXPECT_EQ(job.input.run_at, "2026-01-01T00:00:00+00:00");
  EXPECT_EQ(job.input.flags, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(job.timeout, 30s);
  EXPECT_EQ(job.stall_timeout, std::nullopt);
  EXPECT_EQ(job.on_unreachable, OnUnreachable::kill);
}

TEST(JobRow, a_limit_of_nothing_is_no_limit) {
  GivenJob given;
  given.timeout = "0.000000";
  given.stall_timeout = "-1.000000";
  const Job job = job_of(claimed({given})[0]);
  EXPECT_FALSE(job.timeout);
  EXPECT_FALSE(job.stall_timeout);
  EXPECT_EQ(job.on_unreachable, OnUnreachable::keep_running);
}

}  // namespace
}  // namespace pulse
