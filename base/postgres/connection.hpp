// Connection: one session with the database, without waiting: every answer comes by callback from
// the loop.
//
// The interface exists for the tests' scripted double; connection.cpp has the real connection.
// Connecting happens on a separate thread, because libpq resolves names, reads password files and
// may talk to other services while connecting. All functions and callbacks belong to the loop's
// thread. There are no deadlines here: a session sets a deadline and closes the connection when the
// deadline passes (see session.hpp).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/loop/event_loop.hpp"
#include "base/postgres/connection_options.hpp"
#include "base/postgres/query_result.hpp"
#include "base/postgres/statement.hpp"

namespace pulse {

// The server refused a statement; the session goes on.
struct SqlError {
  std::string sqlstate;
  std::string message;
  std::string detail;
  std::string hint;
  std::string context;
};

// The message with the detail in parentheses, if there is one. A detail is a sentence; here its
// period would stand within another sentence.
std::string with_detail(const std::string& message, std::string_view detail);

// The session is gone; the last statement may or may not have happened.
struct ConnectionLost {
  std::string reason;
  // This process had no memory for the reply. libpq says so in words alone, in English where the
  // process has set no other language.
  bool is_for_want_of_memory() const { return reason.find("memory") != std::string::npos; }
};

// Another call of the same transaction was refused, so this call has not happened either.
struct RolledBack {};

using Reply = std::variant<QueryResult, SqlError, ConnectionLost, RolledBack>;
using Replies = std::vector<Reply>;  // one for each call, in the order of the calls
using RepliesHandler = std::function<void(Replies)>;

struct Opened {
  int backend_pid = 0;  // as told at connecting; a pooler invents a pid
  std::string database;
  std::string role;
  bool is_superuser = false;
};

struct OpenFailure {
  std::string reason;
  // Trying again cannot help: the database or the role does not exist, or the credentials were
  // refused.
  bool is_permanent = false;
};

using OpenHandler = std::function<void(std::variant<Opened, OpenFailure>)>;

struct Notice {
  std::string sqlstate;
  std::string message;
  std::string detail = {};
  std::string hint = {};
};

class Connection {
 public:
  virtual ~Connection() = default;

  // Only when closed. The handler is called exactly once, unless close() comes first.
  virtual void open(OpenHandler handler) = 0;

  // Only when open and nothing is running. All calls travel in one round trip. The handler is
  // called exactly once, when the last transaction has ended, unless close() comes first; after
  // ConnectionLost the connection is closed.
  virtual void execute(const Calls& calls, Commit commit, RepliesHandler handler) = 0;

  // Whether the server's session is this worker's alone, so that the session may keep prepared
  // statements.
  virtual void keep_statements(bool is_ours) = 0;

  // Asks the server to cancel the running statement; the reply still comes to the statement's
  // handler.
  virtual void cancel() = 0;

  // Forgets all calls under way: no callback follows.
  virtual void close() noexcept = 0;

  // Bytes came or went for the running statement.
  std::function<void()> on_moved;
  // The session ended while nothing was running.
  std::function<void(ConnectionLost)> on_lost;
  std::function<void(const Notice&)> on_notice;
};

std::unique_ptr<Connection> make_connection(EventLoop& loop, ConnectOptions options);

}  // namespace pulse
