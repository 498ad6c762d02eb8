#include "service/site.hpp"

#include "base/postgres/connection_options.hpp"
#include "service/audit.hpp"

namespace pulse::console {
namespace {

constexpr std::size_t kMaxWaiting = 256;

// No statement of a page takes long; a claim may wait, and is asked for a few seconds at a time.
ThreadPool::MakeSession sessions_of(const Database* database) {
  return [database] {
    return LentSession(database == nullptr ? std::nullopt : std::optional(database->another()),
                       "20s");
  };
}

}  // namespace

Site::Site(std::string node, const Database* database, SiteSessions sessions, Log& log)
    : node_(std::move(node)),
      log_(log),
      quick_(sessions.quick, kMaxWaiting, sessions_of(database)),
      waiting_(sessions.waiting, 0, sessions_of(database)) {}

void Site::log_unreachable(const std::string& reason) {
  const std::lock_guard lock(unreachable_mutex_);
  log_.write(unreachable_.level_of(reason, BootClock::now()), "database_unreachable",
             {{"database", name_in_log(node_)}, {"reason", reason}, {"hint", kHowToConnect}});
}

}  // namespace pulse::console
