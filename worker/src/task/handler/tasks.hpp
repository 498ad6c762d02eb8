// Handler tasks: C++ handlers as tasks of the executor. Belongs to the loop's thread, and is the
// loop's side of the pool: jobs that start together are handed over together, and so are the ends
// of jobs.
//
// A handler cannot be killed. A handler that is told to stop and does not return in time outlives
// the claim, so the process ends: at once, because only the end of the process is sure to end the
// handler.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/log/log.hpp"
#include "base/loop/timers.hpp"
#include "jobs/execution.hpp"
#include "task/handler/pool.hpp"

namespace pulse {

struct HandlerPolicy {
  // How long a handler may go on after the order to stop; a shorter grace of the executor counts
  // instead.
  Duration stop_grace = std::chrono::seconds(5);
  // A handler did not return in time: whether the process is to end.
  std::function<bool(const HandlerRunPtr&)> on_stubborn;
  std::function<void()> end_process;
};

class HandlerTasks {
 public:
  HandlerTasks(HandlerPolicy policy, HandlerPool& pool, std::shared_ptr<HandlerOutbox> outbox,
               Timers& timers, Log& log);

  // For the executor; this object must outlive the executor.
  StartExecution starter();
  // Threads that run a handler, or that a job waits for.
  std::size_t threads_in_use() const { return pool_.in_use() + starting_.size(); }
  // The outbox has messages: hands each message to the execution.
  void take_messages();

 private:
  friend class HandlerExecution;
  ExecutionStart start(const HeldJob& job, ExecutionCallbacks callbacks);
  void give_up(const HandlerRunPtr& run);

  const HandlerPolicy policy_;
  HandlerPool& pool_;
  const std::shared_ptr<HandlerOutbox> outbox_;
  Timers& timers_;
  Log& log_;

  std::vector<HandlerRunPtr> starting_;  // since the last iteration of the loop
  Timer handing_over_;
};

}  // namespace pulse
