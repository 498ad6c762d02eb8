// A connection whose server is the test: it looks at the statement that came and says what happens.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "base/postgres/connection.hpp"

namespace pulse {

class FakeConnection final : public Connection {
 public:
  static constexpr int kBackendPid = 4711;

  // What the worker's code calls.
  void open(OpenHandler handler) override {
    EXPECT_FALSE(is_open_ || opening_) << "opened twice";
    ++opens_;
    opening_ = std::move(handler);
  }
  void execute(const Calls& calls, Commit commit, RepliesHandler handler) override {
    EXPECT_TRUE(is_open_) << calls.back().statement.name << " on a closed connection";
    EXPECT_FALSE(handler_) << calls.back().statement.name << " while " << running()
                           << " is running";
    calls_ = calls;
    commit_ = commit;
    handler_ = std::move(handler);
    for (const Call& call : calls) sent_.emplace_back(call.statement.name);
  }
  void keep_statements(bool is_ours) override { keeps_statements_ = is_ours; }
  void cancel() override { ++cancels_; }
  void close() noexcept override {
    ++closes_;
    is_open_ = false;
    opening_ = nullptr;
    handler_ = nullptr;
  }

  // What the test sees.
  bool is_opening() const { return static_cast<bool>(opening_); }
  bool is_open() const { return is_open_; }
  bool was_lost() const { return was_lost_; }  // and is not back
  bool is_busy() const { return static_cast<bool>(handler_); }
  // The statement that waits for its answer, empty if none does; of several in one round trip the
  // last one, and with_claim() is the one before it.
  std::string running() const { return handler_ ? calls_.back().statement.name : std::string(); }
  std::string with_claim() const {
    return handler_ && calls_.size() > 1 ? calls_.front().statement.name : std::string();
  }
  Commit commit() const { return commit_; }
  bool keeps_statements() const { return keeps_statements_; }
  const Params& params() const { return calls_.back().params; }
  const Params& with_claim_params() const { return calls_.front().params; }
  std::optional<std::size_t> max_bytes() const { return calls_.back().max_bytes; }
  std::string param(std::size_t number) const { return params().at(number).value_or("NULL"); }
  int opens() const { return opens_; }
  int closes() const { return closes_; }
  int cancels() const { return cancels_; }
  // Every statement so far, in order.
  const std::vector<std::string>& sent() const { return sent_; }

  // What the test does. The session is set up; another backend pid than told is a pooler's.
  void accept(int backend_pid = kBackendPid) {
    is_open_ = true;
    was_lost_ = false;
    std::exchange(opening_, nullptr)(Opened{kBackendPid, "shop", "ann", is_superuser_});
    ASSERT_EQ(running(), "set_up");
    answer(QueryResult({"backend_pid", "settings_made"}, {std::to_string(backend_pid), "7"}));
  }
  void be_superuser() { is_superuser_ = true; }
  void refuse(const std::string& reason, bool is_permanent = false) {
    std::exchange(opening_, nullptr)(OpenFailure{reason, is_permanent});
  }
  void answer(Reply reply) {
    ASSERT_EQ(calls_.size(), 1U) << with_claim() << " waits for an answer as well";
    answer_all({std::move(reply)});
  }
  void answer_all(Replies replies) {
    ASSERT_TRUE(handler_) << "nothing is running";
    ASSERT_EQ(replies.size(), calls_.size());
    const RepliesHandler handler = std::exchange(handler_, nullptr);
    if (std::holds_alternative<ConnectionLost>(replies.back())) is_open_ = false;
    handler(std::move(replies));
  }
  void refuse_statement(const std::string& sqlstate, const std::string& message = "no",
                        const std::string& detail = "", const std::string& hint = "") {
    answer(SqlError{sqlstate, message, detail, hint, ""});
  }
  // The session ends, whatever it was doing.
  void lose(const std::string& reason = "gone") {
    was_lost_ = true;
    if (handler_) {
      answer_all(Replies(calls_.size(), ConnectionLost{reason}));
      return;
    }
    is_open_ = false;
    on_lost(ConnectionLost{reason});
  }
  // A part of a reply comes in, or a part of a statement goes out.
  void move() { on_moved(); }
  void notice(const std::string& sqlstate) { on_notice(Notice{sqlstate, "notice"}); }

 private:
  bool is_open_ = false;
  bool was_lost_ = false;
  bool is_superuser_ = false;
  OpenHandler opening_;
  RepliesHandler handler_;
  Calls calls_;
  Commit commit_ = Commit::each;
  bool keeps_statements_ = false;
  std::vector<std::string> sent_;
  int opens_ = 0;
  int closes_ = 0;
  int cancels_ = 0;
};

}  // namespace pulse
