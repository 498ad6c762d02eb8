// Function tasks: tasks whose handler is a function of the database: one statement,
// pulse.perform_job, calls the function and completes the job in one transaction. Each job runs in
// a separate session. The worker keeps the session for a while for the next job; nothing of a job
// reaches another job through it.
//
// Ending a job early cancels the statement. A session that does not answer the cancellation is
// closed; the server notices within a second. Whatever the function still does there, the
// transaction fails once the claim is over.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/postgres/session.hpp"
#include "jobs/execution.hpp"

namespace pulse {

class FunctionTasks {
 public:
  using MakeConnection = std::function<std::unique_ptr<Connection>()>;

  FunctionTasks(MakeConnection make_connection, Duration open_deadline, Timers& timers,
                Random random, Log& log);
  ~FunctionTasks();

  // As StartExecution; always starts. Must outlive the started executions.
  ExecutionStart start(const HeldJob& job, ExecutionCallbacks callbacks);

 private:
  class FunctionSession;
  class Running;

  FunctionSession& free_session(const std::string& task);
  FunctionSession& new_session();
  void close_spare();

  const MakeConnection make_connection_;
  const Duration open_deadline_;
  Timers& timers_;
  const Random random_;
  Log& log_;
  std::vector<std::unique_ptr<FunctionSession>> sessions_;
};

// The text of a refused statement for last_error: SQLSTATE, message, detail, hint and context, at
// most 8 kB.
std::string describe_error(const SqlError& error);

}  // namespace pulse
