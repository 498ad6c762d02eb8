#include "task/executable/starter.hpp"

#include <unistd.h>

#include <utility>

#include "task/executable/environment.hpp"
#include "task/executable/run.hpp"

namespace pulse {
namespace {

ExecutionStart start(const ExecutableSettings& settings, const HeldJob& job,
                     const Registration& registration, TimePoint alive_as_of,
                     ExecutionCallbacks callbacks) {
  TaskRefusal refusal;
  const TaskInput& input = job.job.input;
  const auto executable = settings.folder.find(input.identifier, refusal);
  if (!executable) {
    const bool is_missing = settings.folder.missing().contains(input.identifier);
    if (is_missing && settings.on_missing) settings.on_missing();
    return {nullptr, is_missing || refusal.is_transient(), refusal.reason};
  }
  ExecutableOptions options;
  options.minder_path = settings.minder_path;
  options.rules = settings.rules;
  options.ping_limit = task_silence_limit(job.job, registration);
  options.silence_grace = registration.kill_allowance();
  options.alive_as_of = alive_as_of;
  options.progress_interval = progress_interval(job.job.stall_timeout);
  options.job_id = input.job_id;
  options.environment = task_environment(input, environ, settings.variables.list());
  options.stdin_text = task_stdin(input);
  options.written = &settings.written;
  options.writer = {input.identifier, input.job_id, input.attempt, input.trace_id()};
  auto started = ExecutableRun::start(settings.loop, *executable, options, std::move(callbacks));
  // The task was found, so any fault now is a fault of the machine; but for a payload that is
  // larger than a file may be.
  if (!started.process) return {nullptr, started.code != UV_EFBIG, started.error};
  return {std::move(started.process), false, {}};
}

}  // namespace

StartExecution executable_starter(ExecutableSettings settings) {
  return [settings = std::move(settings)](const HeldJob& job, const Registration& registration,
                                          TimePoint alive_as_of, ExecutionCallbacks callbacks) {
    return start(settings, job, registration, alive_as_of, std::move(callbacks));
  };
}

}  // namespace pulse
