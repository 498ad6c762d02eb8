// Execution: a running task, as far as the decisions about it need to know. The interface exists
// for the tests' double; task/executable/starter.cpp makes the real executions.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/loop/clock.hpp"
#include "jobs/execution_report.hpp"
#include "jobs/held_jobs.hpp"
#include "liveness/registration.hpp"

namespace pulse {

class Execution {
 public:
  virtual ~Execution() = default;
  // The minder may let the task run until alive_as_of + task_silence_limit().
  virtual void ping(TimePoint alive_as_of) = 0;
  virtual void terminate(Duration grace) = 0;
  // Of the process that runs the task, once there is a process.
  virtual std::optional<std::int64_t> pid() const { return std::nullopt; }
  // Comes before terminate(), for code that can be told.
  virtual void explain(EndReason /*reason*/) {}
  // Takes the job out of the queue in front of the task's code, if the task has a queue. True: no
  // code has run or will run for the job, and no callback comes.
  virtual bool take_back() { return false; }
};

struct ExecutionCallbacks {
  // At most one call per progress_interval; reports in between are merged, and the newest value of
  // each field wins. Unreported progress comes just before on_end. May carry a checkpoint.
  std::function<void(const TaskProgress&)> on_progress;
  // Exactly once, unless the object is destroyed first. Comes when the task has ended and its
  // output is read, at most 100 ms later. The minder kills processes that the task left running
  // then and there: children do not outlive the task. The object may be destroyed inside.
  std::function<void(const ExecutionEnd&)> on_end;
  // Optional: raw chunks of stdout, in order; where unset, stdout is /dev/null. The object must not
  // be destroyed inside.
  std::function<void(std::string_view)> on_stdout;
};

struct ExecutionStart {
  std::unique_ptr<Execution> execution;  // empty: the task did not start
  // Neither the job nor the task is at fault: the job goes back.
  bool is_transient = false;
  std::string error;
};

using StartExecution =
    std::function<ExecutionStart(const HeldJob& job, const Registration& registration,
                                 TimePoint alive_as_of, ExecutionCallbacks callbacks)>;

}  // namespace pulse
