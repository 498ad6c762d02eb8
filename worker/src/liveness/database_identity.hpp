// Database identity: which database a session has reached, by facts that no connection string says:
// the server's system identifier and the database's oid. A process asks before it registers with
// one of several databases, so that no database gets it twice.
#pragma once

#include <functional>
#include <string>

#include "base/log/log.hpp"
#include "base/postgres/session.hpp"

namespace pulse {

class DatabaseIdentity {
 public:
  // `take` gets the identity once; an empty identity where the server tells none.
  DatabaseIdentity(Session& session, std::function<void(const std::string& identity)> take,
                   Log& log);

  bool is_known() const { return is_known_; }

 private:
  bool send_next();
  void take(const Reply& reply);

  Session& session_;
  const std::function<void(const std::string&)> take_;
  Log& log_;
  bool is_known_ = false;
};

}  // namespace pulse
