#include "executable/executable_starter.hpp"

#include <unistd.h>

#include "executable/executable_run.hpp"
#include "executable/task_environment.hpp"

namespace pulse {
namespace {

ExecutionStart start(EventLoop& loop, const TasksFolder& folder, const std::string& minder_path,
                     const minder::TaskRules& rules, const HeldJob& job,
                     const Registration& registration, TimePoint alive_as_of,
                     ExecutionCallbacks callbacks) {
  TaskRefusal refusal;
  const auto executable = folder.find(job.job.input.identifier, refusal);
  if (!executable) return {nullptr, refusal.is_transient(), refusal.reason};
  ExecutableOptions options;
  options.minder_path = minder_path;
  options.rules = rules;
  options.ping_limit = registration.silence_limit();
  options.silence_grace = registration.kill_allowance();
  options.alive_as_of = alive_as_of;
  options.progress_interval = progress_interval(job.job.stall_timeout);
  options.job_id = job.job.input.job_id;
  options.environment = task_environment(job.job.input, environ);
  options.stdin_text = task_stdin(job.job.input);
  auto started = ExecutableRun::start(loop, *executable, options, std::move(callbacks));
  // The task was found, so whatever is wrong now is wrong with the machine; but for a payload that
  // is larger than a file may be.
  if (!started.process) return {nullptr, started.code != UV_EFBIG, started.error};
  return {std::move(started.process), false, {}};
}

}  // namespace

StartExecution executable_starter(EventLoop& loop, const TasksFolder& folder,
                                  std::string minder_path, const minder::TaskRules& rules) {
  return [&loop, &folder, rules, minder_path = std::move(minder_path)](
             const HeldJob& job, const Registration& registration, TimePoint alive_as_of,
             ExecutionCallbacks callbacks) {
    return start(loop, folder, minder_path, rules, job, registration, alive_as_of,
                 std::move(callbacks));
  };
}

}  // namespace pulse
