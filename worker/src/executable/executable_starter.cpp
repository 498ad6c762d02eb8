#include "executable/executable_starter.hpp"

#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

namespace pulse {
namespace {

class ExecutableExecution final : public Execution {
 public:
  explicit ExecutableExecution(std::unique_ptr<ExecutableRun> process)
      : process_(std::move(process)) {}
  void ping(TimePoint alive_as_of) override { process_->ping(alive_as_of); }
  void terminate(Duration grace) override { process_->terminate(grace); }
  std::optional<std::int64_t> pid() const override { return process_->pid(); }

 private:
  std::unique_ptr<ExecutableRun> process_;
};

std::string folder_of_this_program() {
  std::array<char, PATH_MAX> path{};
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size());
  if (length <= 0) return {};
  const std::string program(path.data(), static_cast<std::size_t>(length));
  return program.substr(0, program.rfind('/'));
}

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
  options.progress_interval = TaskOutput::interval_for(job.job.stall_timeout);
  options.job_id = job.job.input.job_id;
  options.environment = task_environment(job.job.input, environ);
  options.stdin_text = task_stdin(job.job.input);
  auto started =
      ExecutableRun::start(loop.uv(), *executable, std::move(options), std::move(callbacks));
  // The task was found, so whatever is wrong now is wrong with the machine.
  if (!started.process) return {nullptr, true, started.error};
  return {std::make_unique<ExecutableExecution>(std::move(started.process)), false, {}};
}

}  // namespace

std::string find_minder() {
  const char* wanted = std::getenv("PULSE_MINDER");
  if (wanted != nullptr) return access(wanted, X_OK) == 0 ? wanted : std::string();
  const std::string folder = folder_of_this_program();
  for (const std::string& path :
       {folder + "/pulse-minder", folder + "/../libexec/pg_pulse/pulse-minder",
        std::string(PULSE_LIBEXEC_DIR "/pulse-minder")}) {
    if (access(path.c_str(), X_OK) == 0) return path;
  }
  return {};
}

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
