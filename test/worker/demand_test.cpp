// How many jobs a claim asks for, by places and by bytes.
#include "claim/demand.hpp"

#include <gtest/gtest.h>

#include "session/statements.hpp"
#include "worker_bench.hpp"

namespace pulse {
namespace {

constexpr std::size_t kMb = std::size_t{1} << 20U;

Demand wanted(std::size_t start_jobs, std::size_t max_jobs) { return {start_jobs, max_jobs, true}; }

TEST(ByteBoundTest, sizes_that_are_not_known_bound_nothing) {
  const Demand demand = ByteBound(64 * kMb).within(wanted(8, 40), 0);
  EXPECT_EQ(demand.start_jobs, 8);
  EXPECT_EQ(demand.max_jobs, 40);
  EXPECT_TRUE(demand.is_awaited);
}

TEST(ByteBoundTest, as_many_as_would_fit_if_all_were_like_the_largest_of_late) {
  ByteBound bound(64 * kMb);
  bound.take_size(20 * kMb);
  bound.take_size(1);
  EXPECT_EQ(bound.within(wanted(8, 40), 0).max_jobs, 3);
  EXPECT_EQ(bound.within(wanted(8, 40), 0).start_jobs, 3);
  EXPECT_EQ(bound.within(wanted(1, 40), 20 * kMb).max_jobs, 2);
  EXPECT_EQ(bound.within(wanted(1, 40), 20 * kMb).start_jobs, 1);
}

TEST(ByteBoundTest, one_job_as_long_as_the_bound_is_not_reached_and_then_none) {
  ByteBound bound(64 * kMb);
  bound.take_size(1000 * kMb);
  EXPECT_EQ(bound.within(wanted(8, 8), 0).max_jobs, 1) << "however large it is";
  EXPECT_EQ(bound.within(wanted(8, 8), 64 * kMb - 1).max_jobs, 1);
  EXPECT_EQ(bound.within(wanted(8, 8), 64 * kMb).max_jobs, 0);
  EXPECT_EQ(bound.free_bytes(60 * kMb), 4 * kMb);
  EXPECT_EQ(bound.free_bytes(70 * kMb), 0);
}

TEST(ByteBoundTest, a_large_job_is_forgotten_after_some_small_ones) {
  ByteBound bound(64 * kMb);
  bound.take_size(20 * kMb);
  for (int job = 0; job < 20; ++job) bound.take_size(100);
  EXPECT_EQ(bound.within(wanted(8, 40), 0).max_jobs, 40);
}

class HeldBytesTest : public WorkerBench {
 protected:
  static constexpr std::size_t kBound = 1000;

  void given_bound(int concurrency) {
    config_.max_held_bytes = kBound;
    given_worker(concurrency);
  }
  static GivenJob large(std::int64_t id) { return {.id = id, .payload = std::string(600, '1')}; }
};

TEST_F(HeldBytesTest, a_claim_says_how_many_bytes_there_is_room_for) {
  given_bound(4);
  EXPECT_EQ(claim_.max_bytes(), kBound);
  given_running({large(1)});
  ASSERT_EQ(claim_.running(), "claim");
  EXPECT_EQ(claim_.max_bytes(), kBound - 600);
  EXPECT_EQ(claim_.param(1), "1") << "more like it would not fit";
}

TEST_F(HeldBytesTest, ends_of_other_jobs_count_too) {
  given_bound(4);
  given_running({{.id = 1, .payload = "1", .parents = std::string(599, '1')}});
  EXPECT_EQ(claim_.max_bytes(), kBound - 600);
}

TEST_F(HeldBytesTest, nothing_is_claimed_or_awaited_once_the_bound_is_reached) {
  given_bound(4);
  given_running({large(1)});
  given_running({large(2)});
  EXPECT_EQ(claim_.running(), "") << "two slots are free";
  end_task(1);
  ASSERT_EQ(claim_.running(), "claim") << "a job that has ended holds nothing";
  EXPECT_EQ(claim_.max_bytes(), kBound - 600);
}

TEST_F(HeldBytesTest, a_task_that_was_told_leaves_no_text_behind_and_still_counts) {
  const HeldJob* seen = nullptr;
  start_task_ = [&](const HeldJob& job, const Registration&, TimePoint alive_as_of,
                    ExecutionCallbacks callbacks) {
    EXPECT_EQ(job.job.input.payload_json->size(), 600);
    seen = &job;
    return start_task(job, alive_as_of, std::move(callbacks));
  };
  given_bound(4);
  given_running({large(1)});
  ASSERT_NE(seen, nullptr);
  EXPECT_EQ(seen->job.input.payload_json, std::nullopt);
  EXPECT_EQ(claim_.max_bytes(), kBound - 600);
}

TEST_F(HeldBytesTest, a_job_that_came_without_its_payload_goes_back) {
  given_bound(4);
  QueryResult rows = claimed({large(1), large(2)});
  rows.set_last_cut(700);
  claim_.answer(rows);
  turn();
  EXPECT_EQ(started_, (std::vector<std::int64_t>{1}));
  const bool is_with_claim = claim_.with_claim() == "release";
  ASSERT_TRUE(is_with_claim || finish_.running() == "release");
  EXPECT_EQ((is_with_claim ? claim_.with_claim_params() : finish_.params())[0], "{2}");
}

TEST_F(HeldBytesTest, what_a_lost_reply_had_brought_is_looked_at_without_payloads) {
  given_bound(4);
  claim_.lose();
  turn();
  claim_.accept();
  turn();
  ASSERT_EQ(claim_.running(), "held");
  const std::string_view sql = statements::kHeld.sql;
  EXPECT_NE(sql.find("octet_length(j.payload"), sql.npos);
}

}  // namespace
}  // namespace pulse
