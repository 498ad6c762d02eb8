// A session that serves one request after the other, each with the role of its client.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "database/database.hpp"
#include "serve/access.hpp"

namespace pulse::console {

class LentSession {
 public:
  // `statement_timeout`: the setting of the server. Without a database: for requests that are about
  // all nodes, which ask each node in a session of the node.
  LentSession(std::optional<Database> database, std::string statement_timeout);

  // Takes on the role of `access`, and sets in `access` the rights of the role. The session can
  // write only for a request that changes something. Returns nullptr without a database.
  Database* lend(Access& access, bool is_change);

  // Whether a request waits for its session now, for other threads.
  std::shared_ptr<const std::atomic<bool>> opening() const { return is_opening_; }
  bool is_open() const { return database_ && database_->is_open(); }
  void close() {
    if (database_) database_->close();
  }

 private:
  void set_up(const std::string& role, bool may_write);

  std::optional<Database> database_;
  const std::string statement_timeout_;
  std::shared_ptr<std::atomic<bool>> is_opening_ = std::make_shared<std::atomic<bool>>(false);
  std::string role_;
  bool may_write_ = false;
  bool is_operator_ = false;
  bool reads_jobs_ = false;
  std::chrono::steady_clock::time_point set_up_at_;
};

}  // namespace pulse::console
