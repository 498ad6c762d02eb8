// What a starting worker does about earlier workers of its machine.
#include <set>

#include "worker_bench.hpp"

namespace pulse {
namespace {

class HostCheckTest : public WorkerBench {
 protected:
  HostCheckTest() {
    is_process_gone_ = [this](std::int64_t pid, const std::string& start) {
      looked_at_.push_back(std::to_string(pid) + " " + start);
      return gone_.count(pid) > 0;
    };
  }

  static QueryResult processes(const std::vector<std::array<std::string, 3>>& rows) {
    std::vector<QueryResult::Cell> cells;
    for (const auto& row : rows) cells.insert(cells.end(), row.begin(), row.end());
    return QueryResult({"id", "pid", "process_start"}, std::move(cells));
  }
  static QueryResult recovered(const std::string& jobs) { return QueryResult({"jobs"}, {jobs}); }

  void answer(const QueryResult& rows) {
    finish_.answer(rows);
    turn();
  }

  std::set<std::int64_t> gone_;
  std::vector<std::string> looked_at_;
};

TEST_F(HostCheckTest, whose_process_is_gone_is_declared_lost) {
  gone_ = {11, 13};
  given_worker();
  ASSERT_EQ(finish_.running(), "check_host");
  EXPECT_EQ(finish_.params()[0], "7") << "for the id it was registered under";
  answer(processes({{"3", "11", "100"}, {"4", "12", "200"}, {"5", "13", "300"}}));
  EXPECT_EQ(looked_at_, (std::vector<std::string>{"11 100", "12 200", "13 300"}));
  ASSERT_EQ(finish_.running(), "declare_lost");
  EXPECT_EQ(finish_.params()[0], "3");
  answer(recovered("2"));
  ASSERT_EQ(finish_.running(), "declare_lost");
  EXPECT_EQ(finish_.params()[0], "5");
  answer(recovered("0"));
  EXPECT_EQ(finish_.running(), "") << "who lives is left alone";
  EXPECT_TRUE(capture_.has("declared_lost worker=3 jobs=2"));
}

TEST_F(HostCheckTest, who_a_sweep_has_found_lost_meanwhile_is_not_declared_lost_again) {
  gone_ = {11, 13};
  sweep_interval_ = "5.000000";
  given_worker();
  answer(processes({{"3", "11", "100"}, {"5", "13", "300"}}));
  ASSERT_EQ(finish_.running(), "declare_lost");
  claim_.notice("PU100");
  answer(recovered("2"));
  ASSERT_EQ(finish_.running(), "sweep");
  answer(swept(2, /*workers_lost=*/1));
  ASSERT_EQ(finish_.running(), "check_host") << "the server knows which ones are left";
  answer(processes({}));
  ASSERT_EQ(finish_.running(), "sweep") << "the last one found something";
  answer(swept(0));
  EXPECT_EQ(finish_.running(), "");
  EXPECT_FALSE(capture_.has("declared_lost worker=5"));
}

TEST_F(HostCheckTest, it_looks_once_more_when_a_beat_can_be_missed) {
  given_worker();
  answer(processes({}));
  pass_beating(7499ms);
  EXPECT_EQ(finish_.running(), "");
  pass_beating(1ms);
  ASSERT_EQ(finish_.running(), "check_host");
  answer(processes({}));
  pass_beating(1min);
  EXPECT_EQ(finish_.running(), "") << "and then no more";
}

TEST_F(HostCheckTest, a_claim_that_is_under_way_is_waited_for) {
  gone_ = {11};
  given_worker();
  answer(processes({{"3", "11", "100"}}));
  finish_.refuse_statement("55P03", "a claim of worker 3 is under way");
  pass_beating(999ms);
  EXPECT_EQ(finish_.running(), "");
  pass_beating(1ms);
  EXPECT_EQ(finish_.running(), "check_host");
}

TEST_F(HostCheckTest, a_server_that_cannot_tell_is_asked_no_further) {
  given_worker();
  finish_.refuse_statement("42883", "function pulse.check_host(bigint) does not exist");
  turn();
  EXPECT_EQ(finish_.running(), "");
  EXPECT_TRUE(capture_.has("same_host_failed statement=check_host sqlstate=42883"));
}

TEST_F(HostCheckTest, a_lost_reply_is_asked_for_again) {
  given_worker();
  finish_.lose("reset by peer");
  turn();
  pass_beating(6s);
  if (finish_.is_opening()) finish_.accept();
  turn();
  EXPECT_EQ(finish_.running(), "check_host");
}

TEST_F(HostCheckTest, a_new_registration_looks_anew) {
  given_worker();
  answer(processes({}));
  pass_time(5s);
  ASSERT_EQ(heartbeat_.running(), "heartbeat");
  heartbeat_.answer(beat("lost"));
  turn();
  ASSERT_EQ(heartbeat_.running(), "register_worker");
  heartbeat_.answer(registered(9));
  turn();
  ASSERT_EQ(finish_.running(), "check_host");
  EXPECT_EQ(finish_.params()[0], "9");
}

}  // namespace
}  // namespace pulse
