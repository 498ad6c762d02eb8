// Run of an executable: one run of an executable task, from the start to the report of the end: see
// SupervisedChild.
//
// This process should be a child subreaper (PR_SET_CHILD_SUBREAPER, set in main): then the
// processes that a killed minder leaves behind become children of this process, and are killed and
// reaped (orphans.hpp).
//
// All callbacks but on_stdout come from timers, so the caller may destroy the object in a callback.
// Of PULSE_FD one line of 1 MB is kept, and the last checkpoint and result; stdout goes to
// /dev/null unless on_stdout or a log of lines is given; see written_lines.hpp.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/loop/event_loop.hpp"
#include "jobs/execution.hpp"
#include "minder/task_start.hpp"
#include "task/executable/tasks_folder.hpp"
#include "task/executable/written_lines.hpp"

namespace pulse {

struct ExecutableOptions {
  std::string minder_path;
  minder::TaskRules rules;
  // At the last ping + ping_limit the minder sends SIGTERM, silence_grace later SIGKILL. See
  // task_silence_limit() and Registration::kill_allowance().
  std::chrono::milliseconds ping_limit{0};
  std::chrono::milliseconds silence_grace{200};
  // The start of the first ping_limit: the send time of the last good heartbeat or claim.
  TimePoint alive_as_of = BootClock::now();
  std::chrono::milliseconds progress_interval = kProgressInterval;
  std::int64_t job_id = 0;               // shown in the minder's arguments, for people
  std::vector<std::string> environment;  // see task_environment()
  std::string stdin_text;                // see task_stdin()
  int work_directory = -1;               // a directory descriptor; -1 = the tasks folder
  // Where the task's lines go; nothing: stdout to /dev/null, and of stderr only the end is kept.
  WrittenLog* written = nullptr;
  WrittenLines::Writer writer;
};

class ExecutableRun final : public Execution {
 public:
  struct StartResult {
    std::unique_ptr<ExecutableRun> process;  // empty on failure
    // Negative libuv code and a sentence. UV_ENOENT and UV_EACCES mean the minder itself is not
    // there (a fault of the installation); all else is exhaustion: release the job.
    int code = 0;
    std::string error;
  };
  // The executable's descriptors are used during the call only.
  static StartResult start(EventLoop& loop, const Executable& executable,
                           const ExecutableOptions& options, ExecutionCallbacks callbacks);

  ExecutableRun(const ExecutableRun&) = delete;
  ExecutableRun& operator=(const ExecutableRun&) = delete;
  ~ExecutableRun() override;

  // Moves the minder's deadline to alive_as_of + ping_limit. Call ping() at least every
  // ping_limit/4.
  void ping(TimePoint alive_as_of) override;

  // SIGTERM to the process group now, SIGKILL to everything after `grace`. A later call can only
  // bring the SIGKILL forward. on_end follows, at the latest 5 s after the grace: even a minder
  // that the task has stopped is overcome.
  void terminate(Duration grace) override;
  // Of the task itself, from the moment of execution.
  std::optional<std::int64_t> pid() const override;
  void kill() { terminate(Duration::zero()); }

 private:
  class Run;
  explicit ExecutableRun(std::shared_ptr<Run> run) noexcept;

  const std::shared_ptr<Run> run_;  // outlives this object while a callback runs
};

}  // namespace pulse
