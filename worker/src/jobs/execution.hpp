// A running task, as far as the decisions about it need to know. The interface exists for the
// tests' double; executable_starter.cpp makes the real ones.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "executable/executable_run.hpp"
#include "jobs/held_jobs.hpp"
#include "liveness/registration.hpp"
#include "loop/clock.hpp"

namespace pulse {

// Why a task is ended before it ends by itself.
enum class EndReason { none, timeout, stall, cancelled, unreachable, revoked, interrupted };
// In the words of the log and of the lines to processes.
const char* reason_name(EndReason reason);

class Execution {
 public:
  virtual ~Execution() = default;
  // Its minder may let it run until alive_as_of + the silence limit.
  virtual void ping(TimePoint alive_as_of) = 0;
  virtual void terminate(Duration grace) = 0;
  // Of the process that runs it, once there is one.
  virtual std::optional<std::int64_t> pid() const { return std::nullopt; }
  // Comes before terminate(), for code that can be told.
  virtual void explain(EndReason /*reason*/) {}
  // Takes it out of the queue in front of its code, if it has one. True: nothing of it has run or
  // will, and no callback comes.
  virtual bool take_back() { return false; }
};

struct ExecutionStart {
  std::unique_ptr<Execution> execution;  // empty: it did not start
  // Neither the job nor its task is at fault: the job goes back.
  bool is_transient = false;
  std::string error;
};

using StartExecution =
    std::function<ExecutionStart(const HeldJob& job, const Registration& registration,
                                 TimePoint alive_as_of, ExecutionCallbacks callbacks)>;

}  // namespace pulse
