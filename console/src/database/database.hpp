// One session with the server, as a program uses it that asks and waits for the answer.
//
// The statements are calls of functions and views of the schema pulse, with parameters beside them.
// A session that is lost is opened again by the next query. No statement is sent twice, because
// what was asked last may have happened.
#pragma once

#include <libpq-fe.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "database/connection.hpp"
#include "database/connection_options.hpp"
#include "database/query_result.hpp"
#include "database/statement.hpp"

namespace pulse::console {

// The server refused a statement; the session goes on.
class Refused : public std::runtime_error {
 public:
  explicit Refused(SqlError error) : std::runtime_error(error.message), error(std::move(error)) {}

  const SqlError error;
};

// There is no session: it could not be opened, or it ended while it was used.
class Unreachable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Database {
 public:
  explicit Database(ConnectOptions options);

  // Throws Unreachable. Every query does the same where there is no session.
  void open();
  bool is_open() const { return connection_ != nullptr; }
  void close() { connection_.reset(); }
  // Whether there is a session that the server has not ended meanwhile. One that it has ended is
  // closed here, so that the next query opens another.
  bool has_lived_on();
  // Another with the same options; it is not open.
  Database another() const { return Database(options_); }

  // Throws Refused, or Unreachable, after which there is no session.
  QueryResult query(const char* sql, const Params& params = {});

  // The payload of the next notification that arrives within this time; throws Unreachable.
  std::optional<std::string> wait_for_notification(Duration max_wait);

  // How long the server has worked on all queries so far: what their answers took beyond the way
  // there and back, which the quickest one tells.
  std::chrono::microseconds worked() const { return worked_; }

  // Of the server's process, as told when the session was opened; a pooler makes one up.
  int backend_pid() const { return PQbackendPID(connection_.get()); }

  // What the session is: known once it was open.
  const std::string& name() const { return name_; }
  const std::string& role() const { return role_; }

  std::function<void(const SqlError& notice)> on_notice;

 private:
  struct Closing {
    void operator()(PGconn* connection) const noexcept { PQfinish(connection); }
  };

  void set_up();
  void note_answer_after(std::chrono::microseconds taken);
  [[noreturn]] void lose(const std::string& fallback);

  ConnectOptions options_;
  std::unique_ptr<PGconn, Closing> connection_;
  std::string name_;
  std::string role_;
  std::chrono::microseconds worked_{0};
  std::chrono::microseconds quickest_{0};  // of this session
};

}  // namespace pulse::console
