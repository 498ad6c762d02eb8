#include "task/router.hpp"

#include <utility>

namespace pulse {

TaskRouter::TaskRouter(FunctionTasks& functions, ProcessTasks& processes, ProgramTasks& programs,
                       StartExecution executables)
    : functions_(functions),
      processes_(processes),
      programs_(programs),
      executables_(std::move(executables)) {}

StartExecution TaskRouter::starter() {
  return [this](const HeldJob& job, const Registration& registration, TimePoint alive_as_of,
                ExecutionCallbacks callbacks) {
    return start(job, registration, alive_as_of, std::move(callbacks));
  };
}

ExecutionStart TaskRouter::start(const HeldJob& job, const Registration& registration,
                                 TimePoint alive_as_of, ExecutionCallbacks callbacks) {
  if (job.job.has_handler) return functions_.start(job, std::move(callbacks));
  if (processes_.takes(job)) {
    return processes_.start(job, registration, alive_as_of, std::move(callbacks));
  }
  if (programs_.takes(job)) {
    return programs_.start(job, registration, alive_as_of, std::move(callbacks));
  }
  return executables_(job, registration, alive_as_of, std::move(callbacks));
}

}  // namespace pulse
