// Database worker: the worker of one database with everything that only this database uses: its
// connections, its functions, and the part of the log that names the database.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/postgres/connection.hpp"
#include "task/function/tasks.hpp"
#include "task/router.hpp"
#include "worker_group.hpp"

namespace pulse {

// What the workers of all databases of a process share. Everything referred to outlives them.
struct SharedParts {
  const Config& config;
  EventLoop& loop;
  const Random& random;
  ProcessTasks& processes;
  ProgramTasks& programs;
  TaskQueue* queue;  // of both; null where there is none
  SlotPool* pool;    // null with one database
  Log& log;
};

class DatabaseWorker final : public WorkerGroup::Member {
 public:
  // `name`: empty for a database without a name.
  DatabaseWorker(const std::string& name, const ConnectOptions& database, const SharedParts& shared,
                 StartExecution executables);

  Worker& worker() override { return worker_; }

 private:
  std::optional<Log> named_log_;
  Log& log_;
  const std::unique_ptr<Connection> claim_;
  const std::unique_ptr<Connection> finish_;
  const std::unique_ptr<Connection> heartbeat_;
  FunctionTasks functions_;
  TaskRouter router_;
  Worker worker_;
};

}  // namespace pulse
