// Which tasks the next claim is for, where tasks do not share all slots.
#include "claim/share_rota.hpp"

#include <gtest/gtest.h>

namespace pulse {
namespace {

using Tasks = std::vector<std::string>;

constexpr Demand kWhole{.start_jobs = 30, .max_jobs = 30, .is_awaited = true};

const std::vector<TaskShare> kShares{{{"report"}, 2}, {{"mail", "call"}, 10}};

TEST(ShareRotaTest, asks_for_the_whole_where_all_slots_are_shared) {
  const ShareRota rota;
  for (const std::vector<TaskShare>& shares :
       {std::vector<TaskShare>(), std::vector<TaskShare>{{{"mail"}, 3}}}) {
    const auto terms = rota.next(kWhole, shares);
    EXPECT_EQ(terms.demand.max_jobs, 30);
    EXPECT_EQ(terms.tasks, std::nullopt);
    EXPECT_FALSE(rota.has_more(shares));
  }
}

TEST(ShareRotaTest, asks_for_all_first_and_for_no_more_than_each_has_slots) {
  const auto terms = ShareRota().next(kWhole, kShares);
  EXPECT_EQ(terms.tasks, (Tasks{"call", "mail", "report"}));
  EXPECT_EQ(terms.demand.max_jobs, 2);
  EXPECT_TRUE(terms.is_for_all);
}

TEST(ShareRotaTest, fills_each_share_after_an_answer_that_was_full) {
  ShareRota rota;
  rota.take_answer(rota.next(kWhole, kShares), 2);
  const auto reports = rota.next(kWhole, kShares);
  EXPECT_EQ(reports.tasks, Tasks{"report"});
  EXPECT_EQ(reports.demand.max_jobs, 2);
  EXPECT_FALSE(reports.is_for_all);
  rota.take_answer(reports, 0);
  const auto mails = rota.next({.start_jobs = 5, .max_jobs = 5, .is_awaited = true}, kShares);
  EXPECT_EQ(mails.tasks, (Tasks{"mail", "call"}));
  EXPECT_EQ(mails.demand.max_jobs, 5);
  rota.take_answer(mails, 5);
  EXPECT_TRUE(rota.next(kWhole, kShares).is_for_all);
}

TEST(ShareRotaTest, asks_for_all_again_after_an_answer_that_was_not_full) {
  ShareRota rota;
  rota.take_answer(rota.next(kWhole, kShares), 1);
  EXPECT_TRUE(rota.next(kWhole, kShares).is_for_all);
}

TEST(ShareRotaTest, leaves_out_shares_without_a_free_slot) {
  std::vector<TaskShare> shares = kShares;
  shares[0].free = 0;
  const auto terms = ShareRota().next(kWhole, shares);
  EXPECT_EQ(terms.tasks, (Tasks{"call", "mail"}));
  EXPECT_EQ(terms.demand.max_jobs, 10);
  shares[1].free = 0;
  EXPECT_EQ(ShareRota().next(kWhole, shares).demand.max_jobs, 0);
}

TEST(ShareRotaTest, knows_of_a_share_that_the_last_claim_did_not_ask_for) {
  ShareRota rota;
  std::vector<TaskShare> shares = kShares;
  shares[0].free = 0;
  rota.take_answer(rota.next(kWhole, shares), 0);
  EXPECT_FALSE(rota.has_more(shares));
  EXPECT_TRUE(rota.has_more(kShares));
}

}  // namespace
}  // namespace pulse
