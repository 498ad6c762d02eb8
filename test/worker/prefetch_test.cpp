// How many jobs to hold ahead.
#include "claim/demand.hpp"

#include <gtest/gtest.h>

namespace pulse {
namespace {

using namespace std::chrono_literals;

Prefetch given(std::chrono::nanoseconds round_trip, std::chrono::nanoseconds job) {
  Prefetch prefetch;
  prefetch.claim_took(round_trip);
  prefetch.job_took(job);
  return prefetch;
}

TEST(PrefetchTest, none_before_both_times_are_known) {
  Prefetch prefetch;
  EXPECT_EQ(prefetch.target(8), 0);
  prefetch.claim_took(1ms);
  EXPECT_EQ(prefetch.target(8), 0);
  prefetch.job_took(1ms);
  EXPECT_GT(prefetch.target(8), 0);
}

TEST(PrefetchTest, twice_what_is_used_in_one_round_trip) {
  EXPECT_EQ(given(1ms, 2ms).target(4), 4);
  EXPECT_EQ(given(1ms, 4ms).target(4), 2);
  EXPECT_EQ(given(1ms, 10ms).target(1), 1);
}

TEST(PrefetchTest, none_for_long_jobs) {
  EXPECT_EQ(given(1ms, 1s).target(64), 0);
  EXPECT_EQ(given(1ms, 51ms).target(64), 0);
  EXPECT_GT(given(1ms, 49ms).target(64), 0);
}

TEST(PrefetchTest, bounded_per_slot_for_the_shortest_jobs) {
  EXPECT_EQ(given(10ms, 1us).target(8), 32);
  EXPECT_EQ(given(10ms, 0ns).target(8), 32);
}

TEST(PrefetchTest, never_more_than_was_asked_for) {
  for (const int max_ahead : {0, 3}) {
    Prefetch prefetch(max_ahead);
    prefetch.claim_took(10ms);
    prefetch.job_took(1us);
    EXPECT_EQ(prefetch.target(8), max_ahead);
  }
}

TEST(PrefetchTest, adapts_within_a_few_jobs) {
  Prefetch prefetch = given(1ms, 1ms);
  ASSERT_GT(prefetch.target(4), 0);
  int jobs = 0;
  while (prefetch.target(4) > 0 && jobs < 100) {
    prefetch.job_took(10s);
    ++jobs;
  }
  EXPECT_LE(jobs, 3);
}

}  // namespace
}  // namespace pulse
