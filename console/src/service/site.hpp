// Site: the pages and the API of one database, or the pages about all nodes: routes, and threads
// with sessions.
#pragma once

#include <mutex>
#include <string>

#include "base/log/log.hpp"
#include "base/postgres/repeats.hpp"
#include "serve/router.hpp"
#include "service/thread_pool.hpp"

namespace pulse::console {

struct SiteSessions {
  std::size_t quick = 8;     // for requests answered at once
  std::size_t waiting = 32;  // for claims that wait
};

class Site {
 public:
  // `node`: the NAME of one of several databases; empty for the only database, and without a
  // database. `database`: nullptr for the pages about all nodes. The log outlives the site.
  Site(std::string node, const Database* database, SiteSessions sessions, Log& log);

  const std::string& node() const { return node_; }
  ThreadPool& quick() { return quick_; }
  ThreadPool& waiting() { return waiting_; }

  void log_unreachable(const std::string& reason);

  Router router;  // constant once the server has started

 private:
  const std::string node_;
  Log& log_;
  std::mutex unreachable_mutex_;
  Repeats unreachable_;  // guarded by unreachable_mutex_
  ThreadPool quick_;
  ThreadPool waiting_;
};

}  // namespace pulse::console
