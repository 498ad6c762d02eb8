#include "base/postgres/blocking_connection.hpp"

#include <libpq-fe.h>
#include <poll.h>

#include <array>
#include <utility>
#include <vector>

#include "base/postgres/pipeline.hpp"

namespace pulse {
namespace {

using Steady = std::chrono::steady_clock;

// libpq ends its messages with a newline.
std::string reason_of(const PGconn* connection, const char* fallback) {
  std::string reason = connection == nullptr ? "out of memory" : PQerrorMessage(connection);
  while (!reason.empty() && reason.back() == '\n') reason.pop_back();
  return reason.empty() ? fallback : reason;
}

}  // namespace

CancelRequest::~CancelRequest() { PQfreeCancel(request_); }

void CancelRequest::send() const noexcept {
  std::array<char, 256> problem{};
  PQcancel(request_, problem.data(), static_cast<int>(problem.size()));
}

BlockingConnection::BlockingConnection(pg_conn* connection) : connection_(connection) {
  PQsetNoticeReceiver(
      connection_,
      [](void* self, const PGresult* notice) {
        const auto& tell = static_cast<BlockingConnection*>(self)->on_notice;
        if (tell) tell(error_of(notice));
      },
      this);
}

BlockingConnection::~BlockingConnection() { PQfinish(connection_); }

BlockingConnection::Opened BlockingConnection::open(const ConnectOptions& options) {
  std::vector<const char*> keywords;
  std::vector<const char*> values;
  for (const ConnectOptions::Option& option : options.list()) {
    keywords.push_back(option.keyword.c_str());
    values.push_back(option.value.c_str());
  }
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(options.deadline());
  const std::string timeout = std::to_string(seconds.count());
  keywords.insert(keywords.end(), {"connect_timeout", nullptr});
  values.insert(values.end(), {timeout.c_str(), nullptr});
  PGconn* connection = PQconnectdbParams(keywords.data(), values.data(), /*expand_dbname=*/0);
  if (PQstatus(connection) == CONNECTION_OK) {
    return std::unique_ptr<BlockingConnection>(new BlockingConnection(connection));
  }
  ConnectionLost lost{reason_of(connection, "no connection")};
  PQfinish(connection);
  return lost;
}

Reply BlockingConnection::query(const char* sql, const Params& params) {
  std::vector<const char*> values;
  values.reserve(params.size());
  for (const auto& param : params) values.push_back(param ? param->c_str() : nullptr);
  const auto start = Steady::now();
  const ResultPtr result(PQexecParams(connection_, sql, static_cast<int>(values.size()), nullptr,
                                      values.data(), nullptr, nullptr, /*resultFormat=*/0));
  answered_after_ = Steady::now() - start;
  const ExecStatusType status = PQresultStatus(result.get());
  if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) return rows_of(result.get());
  if (PQstatus(connection_) == CONNECTION_BAD || ends_the_session(result.get())) return lost();
  return error_of(result.get());
}

BlockingConnection::Notification BlockingConnection::wait_for_notification(Duration max_wait) {
  const auto end = Steady::now() + max_wait;
  for (;;) {
    if (PQconsumeInput(connection_) == 0) return lost();
    if (PGnotify* notify = PQnotifies(connection_)) {
      std::string payload = notify->extra;
      PQfreemem(notify);
      return payload;
    }
    const auto left = std::chrono::duration_cast<Duration>(end - Steady::now());
    if (left.count() <= 0) return std::nullopt;
    pollfd descriptor{PQsocket(connection_), POLLIN, 0};
    if (poll(&descriptor, 1, static_cast<int>(left.count())) < 0) return std::nullopt;
  }
}

// The server's last message of a session comes before the end of the connection.
bool BlockingConnection::has_lived_on() {
  for (;;) {
    pollfd descriptor{PQsocket(connection_), POLLIN, 0};
    if (poll(&descriptor, 1, 0) == 0) return true;
    if (PQconsumeInput(connection_) == 0) return false;
  }
}

std::unique_ptr<CancelRequest> BlockingConnection::cancel_request() const {
  PGcancel* request = PQgetCancel(connection_);
  return request == nullptr ? nullptr : std::make_unique<CancelRequest>(request);
}

int BlockingConnection::backend_pid() const { return PQbackendPID(connection_); }

std::string BlockingConnection::database() const { return PQdb(connection_); }

std::string BlockingConnection::role() const { return PQuser(connection_); }

ConnectionLost BlockingConnection::lost() const {
  return {reason_of(connection_, "the session has ended")};
}

}  // namespace pulse
