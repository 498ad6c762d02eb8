// Blocking connection: one session with the database, for callers that wait for each answer. A loop
// uses Connection instead. A blocking connection repeats no statement.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "base/postgres/connection.hpp"

// libpq's names: only base/postgres includes libpq's header.
struct pg_cancel;
struct pg_conn;

namespace pulse {

// A request to the server to cancel the statement of a session.
class CancelRequest {
 public:
  explicit CancelRequest(pg_cancel* request) : request_(request) {}
  ~CancelRequest();
  CancelRequest(const CancelRequest&) = delete;
  CancelRequest& operator=(const CancelRequest&) = delete;

  // Waits for the server, perhaps for any time. A signal handler may call send().
  void send() const noexcept;

 private:
  pg_cancel* const request_;
};

class BlockingConnection {
 public:
  using Opened = std::variant<std::unique_ptr<BlockingConnection>, ConnectionLost>;
  using Notification = std::variant<std::optional<std::string>, ConnectionLost>;

  // Tries each host for the deadline of the options.
  static Opened open(const ConnectOptions& options);
  ~BlockingConnection();
  BlockingConnection(const BlockingConnection&) = delete;
  BlockingConnection& operator=(const BlockingConnection&) = delete;

  // Returns rows, an error or ConnectionLost; after ConnectionLost the caller destroys the
  // connection.
  Reply query(const char* sql, const Params& params);
  // The time from sending the last statement to the server's answer.
  std::chrono::nanoseconds answered_after() const { return answered_after_; }

  // The payload of the next notification that arrives within this time; nothing where none arrives.
  Notification wait_for_notification(Duration max_wait);

  // Reads the server's last messages: false where the server has ended the session.
  bool has_lived_on();

  // Cancels the statements of this session; nullptr where memory is out.
  std::unique_ptr<CancelRequest> cancel_request() const;

  // As the server reported at connecting; a pooler makes up the process id.
  int backend_pid() const;
  std::string database() const;
  std::string role() const;

  std::function<void(const SqlError& notice)> on_notice;

 private:
  explicit BlockingConnection(pg_conn* connection);
  ConnectionLost lost() const;

  pg_conn* const connection_;
  std::chrono::nanoseconds answered_after_{};
};

}  // namespace pulse
