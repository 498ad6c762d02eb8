// One synchronous session with the server.
//
// Statements use functions and views of the schema pulse, with parameters apart from the text.
// After a lost session, the next query opens another session. A session repeats no statement,
// because the server may have executed the statement that was under way.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/postgres/blocking_connection.hpp"
#include "base/postgres/connection_options.hpp"
#include "base/postgres/query_result.hpp"
#include "base/postgres/statement.hpp"

namespace pulse::console {

// The server refused a statement; the session goes on.
class Refused : public std::runtime_error {
 public:
  explicit Refused(SqlError error) : std::runtime_error(error.message), error(std::move(error)) {}

  const SqlError error;
};

// No session could be opened, or the session ended during its use.
class Unreachable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Database {
 public:
  // `node`: the NAME of one of several databases.
  explicit Database(ConnectOptions options, std::string node = "");

  // Throws Unreachable. A query without a session opens one, too.
  void open();
  bool is_open() const { return connection_ != nullptr; }
  void close() { connection_.reset(); }
  // Whether the session still lives. The function closes a session that the server has ended, so
  // that the next query opens another session.
  bool has_lived_on();
  // Another session with the same options, not yet open.
  Database another() const { return Database(options_, node_); }

  // Throws Refused, or Unreachable, after which there is no session.
  QueryResult query(const char* sql, const Params& params = {});

  // The payload of the next notification that arrives within this time; throws Unreachable.
  std::optional<std::string> wait_for_notification(Duration max_wait);

  // The time that the server has worked on all queries so far: the time to each answer, less the
  // time of the quickest answer, which stands for the round trip.
  std::chrono::microseconds worked() const { return worked_; }

  // The process id that the server reported when the session was opened; a pooler makes one up.
  int backend_pid() const { return connection_->backend_pid(); }

  // Of the database and the role; empty until the first session is open. One of several databases
  // is called by its NAME.
  const std::string& name() const { return name_; }
  const std::string& role() const { return role_; }

  std::function<void(const SqlError& notice)> on_notice;

 private:
  void set_up();
  void note_answer_after(std::chrono::microseconds taken);
  [[noreturn]] void lose(const ConnectionLost& lost);

  ConnectOptions options_;
  std::string node_;
  std::unique_ptr<BlockingConnection> connection_;
  std::string name_;
  std::string role_;
  std::chrono::microseconds worked_{0};
  std::chrono::microseconds quickest_{0};  // of this session
};

}  // namespace pulse::console
