// A connection that comes back, and deadlines for every wait.
#include "base/postgres/session.hpp"

#include <gtest/gtest.h>

#include "fake_clock.hpp"
#include "fake_connection.hpp"
#include "log_capture.hpp"
#include "server_answers.hpp"

namespace pulse {
namespace {

using namespace std::chrono_literals;

constexpr Statement kAsk{"ask", "SELECT 1"};

class SessionTest : public ::testing::Test {
 protected:
  SessionTest() {
    SessionConfig config;
    config.name = "test";
    config.open_deadline = 5s;
    config.settings = {{"statement_timeout", "60s"}};
    session_ = std::make_unique<Session>(config, connection_, timers_,
                                         Reconnect([] { return 0.5; }, 4s), capture_.log());
    session_->on_opened = [this] { ++opened_; };
    session_->on_lost = [this](const std::string& reason) { lost_.push_back(reason); };
    session_->on_refused = [this](const std::string& reason) { refused_.push_back(reason); };
    session_->on_unreadable = session_->on_refused;
    session_->add_sender([this] {
      if (questions_ == 0) return false;
      --questions_;
      session_->send(kAsk, {}, 2s, [this](Reply reply) { replies_.push_back(std::move(reply)); });
      return true;
    });
  }

  void turn() { settle(timers_); }
  void given_open() {
    session_->open();
    connection_.accept();
    turn();
  }
  void ask(int questions = 1) {
    questions_ += questions;
    session_->wake();
    turn();
  }

  FakeClock clock_;
  Timers timers_{clock_};
  LogCapture capture_;
  FakeConnection connection_;
  std::unique_ptr<Session> session_;
  int questions_ = 0;
  std::vector<Reply> replies_;
  int opened_ = 0;
  std::vector<std::string> lost_;
  std::vector<std::string> refused_;
};

TEST_F(SessionTest, the_session_is_set_up_before_anything_is_sent) {
  questions_ = 1;
  session_->open();
  turn();
  EXPECT_TRUE(connection_.is_opening());
  connection_.accept();
  EXPECT_EQ(connection_.params(), (Params{std::to_string(FakeConnection::kBackendPid),
                                          R"({"statement_timeout"})", R"({"60s"})"}));
  EXPECT_EQ(opened_, 1);
  turn();
  EXPECT_EQ(connection_.sent(), (std::vector<std::string>{"set_up", "ask"}));
  EXPECT_FALSE(session_->is_pooled());
}

TEST_F(SessionTest, another_backend_than_told_is_a_poolers) {
  int told = 0;
  session_->on_pooled = [&told] { ++told; };
  session_->open();
  connection_.accept(FakeConnection::kBackendPid + 1);
  EXPECT_TRUE(session_->is_pooled());
  EXPECT_EQ(told, 1);
  EXPECT_FALSE(connection_.keeps_statements());
}

TEST_F(SessionTest, a_session_of_our_own_keeps_statements) {
  given_open();
  EXPECT_TRUE(connection_.keeps_statements());
}

TEST_F(SessionTest, what_shares_a_round_trip_is_answered_in_order) {
  std::vector<std::string> answered;
  const auto taker = [&](const std::string& name) {
    return [&answered, name](const Reply& reply) {
      answered.push_back(name + (std::holds_alternative<QueryResult>(reply) ? " rows" : " lost"));
    };
  };
  session_->add_sender([this, taker] {
    session_->send({{kAsk, {}}, {kAsk, {}}}, Commit::each, 2s, {taker("first"), taker("second")});
    return true;
  });
  given_open();
  connection_.answer_all({done(), ConnectionLost{"gone"}});
  EXPECT_EQ(answered, (std::vector<std::string>{"first rows", "second lost"}));
  EXPECT_EQ(lost_, (std::vector<std::string>{"gone"}));
}

TEST_F(SessionTest, one_statement_at_a_time) {
  given_open();
  ask(2);
  EXPECT_EQ(connection_.running(), "ask");
  EXPECT_EQ(questions_, 1);
  connection_.answer(done());
  turn();
  EXPECT_EQ(questions_, 0);
  EXPECT_EQ(connection_.running(), "ask");
}

TEST_F(SessionTest, senders_take_turns) {
  std::vector<std::string> order;
  const auto sender = [&](const std::string& name) {
    return [this, &order, name] {
      order.push_back(name);
      session_->send(kAsk, {}, 2s, [](const Reply&) {});
      return true;
    };
  };
  session_->add_sender(sender("a"));
  session_->add_sender(sender("b"));
  given_open();
  for (int i = 0; i < 3; ++i) {
    connection_.answer(done());
    turn();
  }
  EXPECT_EQ(order, (std::vector<std::string>{"a", "b", "a", "b"}));
}

TEST_F(SessionTest, after_a_deadline_the_socket_is_closed_and_opened_anew) {
  given_open();
  ask();
  pass(clock_, timers_, 2s - 1ns);
  EXPECT_EQ(connection_.closes(), 0);
  pass(clock_, timers_, 1ns);
  EXPECT_EQ(connection_.closes(), 1);
  ASSERT_EQ(replies_.size(), 1U);
  EXPECT_EQ(std::get<ConnectionLost>(replies_[0]).reason, "no answer to ask in time");
  EXPECT_EQ(lost_.size(), 1U);
  EXPECT_TRUE(connection_.is_opening());  // at once, because it had lived
}

TEST_F(SessionTest, an_answer_ends_its_deadline) {
  given_open();
  ask();
  connection_.answer(done());
  pass(clock_, timers_, 1h);
  EXPECT_EQ(connection_.closes(), 0);
}

TEST_F(SessionTest, opening_has_a_deadline) {
  session_->open();
  pass(clock_, timers_, 5s);
  EXPECT_EQ(connection_.closes(), 1);
  EXPECT_EQ(connection_.opens(), 2);
}

TEST_F(SessionTest, a_refused_opening_is_tried_again_with_growing_pauses) {
  session_->open();
  connection_.refuse("down");
  turn();
  EXPECT_EQ(connection_.opens(), 2);
  connection_.refuse("down");
  turn();
  EXPECT_EQ(connection_.opens(), 2);
  pass(clock_, timers_, 50ms);
  EXPECT_EQ(connection_.opens(), 3);
  EXPECT_TRUE(refused_.empty());
}

TEST_F(SessionTest, a_permanent_refusal_is_told) {
  session_->open();
  connection_.refuse("no such database", /*is_permanent=*/true);
  EXPECT_EQ(refused_, std::vector<std::string>{"no such database"});
  turn();
  EXPECT_EQ(connection_.opens(), 2);
}

TEST_F(SessionTest, it_knows_since_when_it_is_refused_for_good) {
  session_->open();
  const TimePoint begin = clock_.now();
  connection_.refuse("no entry in pg_hba.conf", /*is_permanent=*/true);
  pass(clock_, timers_, 1s);
  connection_.refuse("no entry in pg_hba.conf", /*is_permanent=*/true);
  EXPECT_EQ(session_->refused_since(), begin);
  pass(clock_, timers_, 1s);
  connection_.refuse("starting up");
  EXPECT_FALSE(session_->refused_since());
  pass(clock_, timers_, 1s);
  connection_.refuse("no entry in pg_hba.conf", /*is_permanent=*/true);
  pass(clock_, timers_, 1s);
  connection_.accept();
  EXPECT_FALSE(session_->refused_since());
}

TEST_F(SessionTest, a_loss_while_idle_is_told_and_mended) {
  given_open();
  connection_.lose("terminated");
  EXPECT_EQ(lost_, std::vector<std::string>{"terminated"});
  EXPECT_FALSE(session_->is_open());
  turn();
  connection_.accept();
  EXPECT_EQ(opened_, 2);
}

TEST_F(SessionTest, nothing_is_sent_while_it_is_lost) {
  given_open();
  connection_.lose();
  ask();
  EXPECT_EQ(questions_, 1);
  turn();
  connection_.accept();
  turn();
  EXPECT_EQ(questions_, 0);
}

TEST_F(SessionTest, a_loss_in_the_middle_of_a_statement_reaches_its_sender_first) {
  given_open();
  ask();
  connection_.lose("crash");
  ASSERT_EQ(replies_.size(), 1U);
  EXPECT_TRUE(std::holds_alternative<ConnectionLost>(replies_[0]));
  EXPECT_EQ(lost_, std::vector<std::string>{"crash"});
}

TEST_F(SessionTest, a_session_that_was_never_open_names_the_way_out) {
  session_->open();
  connection_.refuse("no route to host");
  EXPECT_TRUE(capture_.has("(PGHOST, PGDATABASE, "));
}

TEST_F(SessionTest, an_outage_is_no_matter_of_options) {
  given_open();
  connection_.lose("crash");
  EXPECT_TRUE(capture_.has("reason=crash"));
  EXPECT_FALSE(capture_.has("(PGHOST, PGDATABASE, "));
}

TEST_F(SessionTest, the_same_reason_again_and_again_is_one_line_above_debug) {
  session_->open();
  for (int i = 0; i < 5; ++i) {
    connection_.refuse("down");
    pass(clock_, timers_, 4s);
  }
  const std::string text = capture_.text();
  const auto first = text.find("warning reconnecting");
  EXPECT_NE(first, std::string::npos);
  EXPECT_EQ(text.find("warning reconnecting", first + 1), std::string::npos);
}

TEST_F(SessionTest, an_outage_is_said_again_every_half_minute) {
  session_->open();
  for (int i = 0; i < 16; ++i) {
    connection_.refuse("down");
    pass(clock_, timers_, 4s);
  }
  const std::string text = capture_.text();
  int said = 0;
  for (auto at = text.find("warning reconnecting"); at != std::string::npos;
       at = text.find("warning reconnecting", at + 1))
    ++said;
  EXPECT_EQ(said, 2) << text;
}

TEST_F(SessionTest, an_answer_of_another_version_is_a_refusal) {
  session_->add_sender([this] {
    session_->send(kAsk, {}, 2s,
                   [](const Reply& reply) { (void)std::get<QueryResult>(reply)[0].integer("id"); });
    return true;
  });
  given_open();
  connection_.answer(done());
  EXPECT_EQ(refused_, std::vector<std::string>{"ask: the server returned no column id"});
}

TEST_F(SessionTest, a_handler_that_closes_and_opens_it_ends_all_that_was_under_way) {
  int answers = 0;
  const auto reopen = [&](const Reply&) {
    ++answers;
    session_->close();
    session_->open();
  };
  int rounds = 2;
  session_->add_sender([&] {
    if (--rounds < 0) return false;
    session_->send({{kAsk, {}}, {kAsk, {}}}, Commit::each, 2s, {reopen, reopen});
    return true;
  });
  given_open();
  connection_.lose();
  pass(clock_, timers_, 1s);
  EXPECT_EQ(answers, 1);
  EXPECT_EQ(connection_.opens(), 2);
  EXPECT_TRUE(lost_.empty());
  connection_.accept();
  turn();
  connection_.answer_all({done(), done()});
  EXPECT_EQ(answers, 2);
  EXPECT_EQ(connection_.opens(), 3);
}

TEST_F(SessionTest, after_close_nothing_happens_any_more) {
  given_open();
  ask();
  session_->close();
  pass(clock_, timers_, 1h);
  EXPECT_TRUE(replies_.empty());
  EXPECT_TRUE(lost_.empty());
  EXPECT_EQ(connection_.opens(), 1);
}

TEST_F(SessionTest, a_pause_ends_when_another_session_is_open) {
  given_open();
  connection_.lose();
  turn();
  connection_.refuse("away");
  turn();
  ASSERT_FALSE(connection_.is_opening());
  session_->hurry(clock_.now(), false);
  EXPECT_TRUE(connection_.is_opening());
}

TEST_F(SessionTest, a_try_that_another_session_has_overtaken_begins_anew) {
  session_->open();
  session_->hurry(clock_.now(), false);
  EXPECT_EQ(connection_.opens(), 1);
  clock_.advance(2s);
  session_->hurry(clock_.now(), false);
  EXPECT_EQ(connection_.opens(), 2);
  connection_.accept();
  EXPECT_EQ(opened_, 1);
}

TEST_F(SessionTest, what_stands_still_beside_one_that_hung_is_opened_again) {
  given_open();
  ask();
  clock_.advance(1s);
  session_->hurry(clock_.now(), false);
  EXPECT_TRUE(connection_.is_open());
  connection_.move();
  session_->hurry(clock_.now(), true);
  EXPECT_TRUE(connection_.is_open()) << "bytes have moved";
  clock_.advance(1s);
  session_->hurry(clock_.now(), true);
  EXPECT_FALSE(connection_.is_open());
  ASSERT_EQ(replies_.size(), 1U);
  EXPECT_TRUE(std::holds_alternative<ConnectionLost>(replies_[0]));
  turn();
  EXPECT_TRUE(connection_.is_opening());
}

}  // namespace
}  // namespace pulse
