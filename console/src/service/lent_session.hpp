// A session that serves one request after the other, each with the role of the request's client.
#pragma once

#include <chrono>
#include <string>

#include "database/database.hpp"
#include "serve/access.hpp"

namespace pulse::console {

class LentSession {
 public:
  // `statement_timeout`: the setting of the server.
  LentSession(Database database, std::string statement_timeout);

  // Takes on the role of `access`, and sets in `access` the rights of the role. The session can
  // write only for a request that changes something.
  Database& lend(Access& access, bool is_change);

  bool is_open() const { return database_.is_open(); }
  void close() { database_.close(); }

 private:
  void set_up(const std::string& role, bool may_write);

  Database database_;
  const std::string statement_timeout_;
  std::string role_;
  bool may_write_ = false;
  bool is_operator_ = false;
  bool reads_jobs_ = false;
  std::chrono::steady_clock::time_point set_up_at_;
};

}  // namespace pulse::console
