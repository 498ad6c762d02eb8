// A connection whose server is the test: it looks at the statement that came and says what happens.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "connection.hpp"

namespace pulse {

class FakeConnection final : public Connection {
 public:
  static constexpr int kBackendPid = 4711;

  // What the worker's code calls.
  void open(OpenHandler handler) override {
    ++opens_;
    opening_ = std::move(handler);
  }
  void execute(const Statement& statement, const Params& params, ReplyHandler handler) override {
    EXPECT_TRUE(is_open_) << statement.name << " on a closed connection";
    EXPECT_FALSE(handler_) << statement.name << " while " << name_ << " is running";
    name_ = statement.name;
    params_ = params;
    handler_ = std::move(handler);
    sent_.push_back(name_);
  }
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
  bool is_busy() const { return static_cast<bool>(handler_); }
  // The statement that waits for its answer, empty if none does.
  std::string running() const { return handler_ ? name_ : std::string(); }
  const Params& params() const { return params_; }
  std::string param(std::size_t number) const { return params_.at(number).value_or("NULL"); }
  int opens() const { return opens_; }
  int closes() const { return closes_; }
  int cancels() const { return cancels_; }
  // Every statement so far, in order.
  const std::vector<std::string>& sent() const { return sent_; }

  // What the test does. The session is set up; another backend pid than told is a pooler's.
  void accept(int backend_pid = kBackendPid) {
    is_open_ = true;
    std::exchange(opening_, nullptr)(Opened{kBackendPid, 150000});
    ASSERT_EQ(running(), "set_up");
    answer(Rows({"backend_pid", "settings_made"}, {std::to_string(backend_pid), "7"}));
  }
  void refuse(const std::string& reason, bool is_permanent = false) {
    std::exchange(opening_, nullptr)(OpenFailure{reason, is_permanent});
  }
  void answer(Reply reply) {
    ASSERT_TRUE(handler_) << "nothing is running";
    const ReplyHandler handler = std::exchange(handler_, nullptr);
    if (std::holds_alternative<ConnectionLost>(reply)) is_open_ = false;
    handler(std::move(reply));
  }
  void refuse_statement(const std::string& sqlstate, const std::string& message = "no") {
    answer(SqlError{sqlstate, message, "", ""});
  }
  // The session ends, whatever it was doing.
  void lose(const std::string& reason = "gone") {
    if (handler_) {
      answer(ConnectionLost{reason});
      return;
    }
    is_open_ = false;
    on_lost(ConnectionLost{reason});
  }
  void notice(const std::string& sqlstate) { on_notice(Notice{sqlstate, "notice"}); }

 private:
  bool is_open_ = false;
  OpenHandler opening_;
  ReplyHandler handler_;
  std::string name_;
  Params params_;
  std::vector<std::string> sent_;
  int opens_ = 0;
  int closes_ = 0;
  int cancels_ = 0;
};

}  // namespace pulse
