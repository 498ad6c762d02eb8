// A session that is lent to one request after the other, each with the role of who asks.
#pragma once

#include <chrono>
#include <string>

#include "database/database.hpp"
#include "serve/access.hpp"

namespace pulse::console {

class LentSession {
 public:
  // `statement_timeout`: of the server, as its setting has it.
  LentSession(Database database, std::string statement_timeout);

  // With the role of this access, which learns whether it is an operator's. Only a request that
  // changes something can write.
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
  std::chrono::steady_clock::time_point set_up_at_;
};

}  // namespace pulse::console
