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

  // A worker whose first look at its machine has found these.
  void given_worker_beside(const std::vector<std::array<std::string, 3>>& rows) {
    given_looking_worker();
    claim_.answer(processes(rows));
    turn();
  }
  // The same, which finds nobody gone and no job either.
  void given_waiting_worker() {
    given_worker_beside({});
    heartbeat_.answer(done());
    turn();
    heartbeat_.answer(handler_tasks());
    turn();
    ASSERT_EQ(claim_.running(), "claim");
    claim_.answer(nothing());
    turn();
    ASSERT_EQ(claim_.running(), "wait_for_job");
  }
  void given_looking_worker() {
    given_unregistered_worker();
    heartbeat_.accept();
    claim_.accept();
    turn();
    heartbeat_.answer(registered(kWorkerId, sweep_interval_));
    turn();
    ASSERT_EQ(claim_.running(), "check_host");
    EXPECT_EQ(claim_.params()[0], "7") << "for the id it was registered under";
  }
  // It is sent over whichever connection is free first.
  FakeConnection& carrier(const std::string& statement) {
    return finish_.running() == statement ? finish_ : claim_;
  }
  void answer(const std::string& statement, const QueryResult& rows) {
    ASSERT_EQ(carrier(statement).running(), statement);
    carrier(statement).answer(rows);
    turn();
  }

  std::set<std::int64_t> gone_;
  std::vector<std::string> looked_at_;
};

TEST_F(HostCheckTest, whose_process_is_gone_is_declared_lost) {
  gone_ = {11, 13};
  given_worker_beside({{"3", "11", "100"}, {"4", "12", "200"}, {"5", "13", "300"}});
  EXPECT_EQ(looked_at_, (std::vector<std::string>{"11 100", "12 200", "13 300"}));
  EXPECT_EQ(carrier("declare_lost").params()[0], "3");
  answer("declare_lost", recovered("2"));
  EXPECT_EQ(carrier("declare_lost").params()[0], "5");
  answer("declare_lost", recovered("0"));
  EXPECT_NE(carrier("declare_lost").running(), "declare_lost") << "who lives is left alone";
  EXPECT_TRUE(capture_.has("declared_lost worker=3 jobs=2"));
}

TEST_F(HostCheckTest, who_a_sweep_has_found_lost_meanwhile_is_not_declared_lost_again) {
  gone_ = {11, 13};
  sweep_interval_ = "5.000000";
  given_worker_beside({{"3", "11", "100"}, {"5", "13", "300"}});
  claim_.notice("PU100");
  answer("declare_lost", recovered("2"));
  answer("sweep", swept(2, /*workers_lost=*/1));
  answer("check_host", processes({}));  // the server knows which ones are left
  answer("sweep", swept(0));            // the last one found something
  EXPECT_NE(carrier("declare_lost").running(), "declare_lost");
  EXPECT_FALSE(capture_.has("declared_lost worker=5"));
}

TEST_F(HostCheckTest, it_looks_once_more_when_a_beat_can_be_missed) {
  given_waiting_worker();
  EXPECT_EQ(claim_.param(1), "7500 milliseconds") << "its wait is over then";
  pass_beating(7500ms);
  claim_.answer(nothing());
  turn();
  ASSERT_EQ(claim_.running(), "check_host");
  claim_.answer(processes({}));
  turn();
  claim_.answer(nothing());
  turn();
  EXPECT_EQ(claim_.param(1), "10000 milliseconds") << "and then no more";
  EXPECT_EQ(finish_.opens(), 0) << "who finds nobody needs no third connection";
}

TEST_F(HostCheckTest, a_claim_that_is_under_way_is_waited_for) {
  gone_ = {11};
  given_worker_beside({{"3", "11", "100"}});
  carrier("declare_lost").refuse_statement("55P03", "a claim of worker 3 is under way");
  pass_time(999ms);
  EXPECT_NE(carrier("check_host").running(), "check_host");
  pass_time(1ms);
  turn();
  EXPECT_EQ(carrier("check_host").running(), "check_host");
}

TEST_F(HostCheckTest, a_server_that_cannot_tell_is_asked_no_further) {
  given_looking_worker();
  claim_.refuse_statement("42883", "function pulse.check_host(bigint) does not exist");
  turn();
  EXPECT_EQ(claim_.running(), "");
  EXPECT_TRUE(capture_.has("same_host_failed statement=check_host sqlstate=42883"));
}

TEST_F(HostCheckTest, a_lost_reply_is_asked_for_again) {
  given_looking_worker();
  claim_.lose("reset by peer");
  turn();
  EXPECT_EQ(finish_.running(), "check_host") << "over whichever connection is to be had";
}

TEST_F(HostCheckTest, a_new_registration_looks_anew) {
  given_waiting_worker();
  pass_time(5s);
  ASSERT_EQ(heartbeat_.running(), "heartbeat");
  heartbeat_.answer(beat("lost"));
  turn();
  ASSERT_EQ(heartbeat_.running(), "register_worker");
  heartbeat_.answer(registered(9));
  turn();
  claim_.answer(nothing());
  turn();
  ASSERT_EQ(claim_.running(), "check_host");
  EXPECT_EQ(claim_.params()[0], "9");
}

}  // namespace
}  // namespace pulse
