#include "database_worker.hpp"

#include <utility>

#include "liveness/identity.hpp"

namespace pulse {
namespace {

Config config_of(Config config, const std::string& name, bool is_one_of_many) {
  config.database_name = name;
  config.is_one_of_many = is_one_of_many;
  return config;
}

Log& log_of(std::optional<Log>& named, const std::string& name, Log& log) {
  return name.empty() ? log : named.emplace(log, name);
}

}  // namespace

DatabaseWorker::DatabaseWorker(const std::string& name, const ConnectOptions& database,
                               const SharedParts& shared, StartExecution executables)
    : log_(log_of(named_log_, name, shared.log)),
      claim_(make_connection(shared.loop, database)),
      finish_(make_connection(shared.loop, database)),
      heartbeat_(make_connection(shared.loop, database)),
      functions_([&loop = shared.loop, database] { return make_connection(loop, database); },
                 database.deadline(), shared.loop.timers(), shared.random, log_),
      router_(functions_, shared.processes, shared.programs, std::move(executables)),
      worker_(config_of(shared.config, name, shared.pool != nullptr), {}, database.deadline(),
              {*claim_, *finish_, *heartbeat_}, router_.starter(), shared.loop.timers(),
              shared.random, log_) {
  worker_.is_process_gone = is_process_gone;
  if (shared.pool != nullptr) {
    worker_.share_slots(*shared.pool, shared.queue);
  } else if (shared.queue != nullptr) {
    worker_.set_queue(*shared.queue);
  }
}

}  // namespace pulse
