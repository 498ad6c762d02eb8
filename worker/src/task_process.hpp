// One run of an executable task, from start to a told end.
//
// The task runs under pulse-minder, which is its parent and outlives a stopped or dead worker: see
// minder/README.md. Everything here belongs to the thread that runs the loop, nothing blocks, and
// callbacks come from the loop, never from inside start(), ping(), terminate() or kill().
//
// Memory is bounded whatever the task writes: stdout goes to /dev/null unless on_stdout is given,
// of stderr the last 8 kB are kept, of PULSE_FD one line of 1 MB and the last checkpoint and result.
//
// Destroying the object hangs up: no callback comes any more, the minder terminates what is left,
// and the loop keeps the few handles that are needed to reap it.

#pragma once

#include <uv.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "boot_clock.hpp"
#include "task_folder.hpp"
#include "task_output.hpp"

namespace pulse {

struct TaskEnd {
    enum class Kind {
        succeeded,        // exit 0
        failed,           // any other exit code but 100
        failed_for_good,  // exit 100: do not retry
        signalled,        // ended by a signal
        not_started,      // could not be executed: `error` says why
        minder_lost,      // its minder was killed; the task was killed too, its status is unknown
    };
    enum class StoppedBy {
        nobody,   // it ended by itself
        worker,   // after terminate() or kill(); the exit status is still the task's own
        silence,  // the minder ended it: no ping within the limit (this process was stopped)
    };

    Kind kind = Kind::failed;
    StoppedBy stopped_by = StoppedBy::nobody;
    int exit_code = 0;  // of failed and failed_for_good
    int signal = 0;     // of signalled
    // not_started for want of memory, processes or a quiet file: release the job, do not fail it.
    bool is_transient = false;
    // What happened and the tail of stderr, at most 8 kB of UTF-8 without NUL; empty on success.
    std::string error;
    std::optional<std::string> result;  // JSON text of the last `result` line
    std::size_t dropped_lines = 0;      // PULSE_FD lines that were malformed or too long
};

struct TaskOptions {
    std::string minder_path;
    // At the last ping + ping_limit the minder sends SIGTERM, silence_grace later SIGKILL. Give
    // sweep_threshold − margin; silence_grace should fit into the min(1 s, threshold/10) of it.
    std::chrono::milliseconds ping_limit{0};
    std::chrono::milliseconds silence_grace{200};
    // What the first ping_limit is counted from: the send time of the last good heartbeat or claim.
    BootClock::time_point alive_as_of = BootClock::now();
    std::int64_t job_id = 0;               // shown in the minder's arguments, for people
    std::vector<std::string> environment;  // see task_environment()
    std::string stdin_text;                // see task_stdin()
    int work_directory = -1;               // a directory descriptor; -1 = the tasks folder
};

struct TaskCallbacks {
    // At most one a second; reports in between are merged, the newest value of each field wins.
    // What is still unreported comes just before on_end. May carry a checkpoint.
    std::function<void(const TaskProgress&)> on_progress;
    // Exactly once, unless the object is destroyed first. Comes when the task has ended and its
    // output is read, at most 100 ms later. What it left running is killed by the minder then and
    // there: children do not outlive their task. The object may be destroyed inside.
    std::function<void(const TaskEnd&)> on_end;
    // Optional: raw chunks of stdout, in order, dropped when empty.
    std::function<void(std::string_view)> on_stdout;
};

class TaskProcess {
public:
    struct StartResult {
        std::unique_ptr<TaskProcess> process;  // empty on failure
        // Negative libuv code and a sentence. UV_ENOENT and UV_EACCES mean the minder itself is not
        // there (a fault of the installation); all else is exhaustion: release the job.
        int code = 0;
        std::string error;
    };
    // The executable's descriptors are used during the call only.
    static StartResult start(uv_loop_t* loop, const TaskExecutable& executable, TaskOptions options,
                             TaskCallbacks callbacks);

    TaskProcess(const TaskProcess&) = delete;
    TaskProcess& operator=(const TaskProcess&) = delete;
    ~TaskProcess();

    // Moves the minder's deadline to alive_as_of + ping_limit. Call it at least every ping_limit/4.
    void ping(BootClock::time_point alive_as_of = BootClock::now()) noexcept;

    // SIGTERM to the process group now, SIGKILL to everything after `grace`. A later call can only
    // bring the SIGKILL forward.
    void terminate(std::chrono::milliseconds grace) noexcept;
    void kill() noexcept { terminate(std::chrono::milliseconds::zero()); }

private:
    class Run;
    explicit TaskProcess(std::unique_ptr<Run> run) noexcept;

    std::unique_ptr<Run> run_;
};

// Kills and reaps children of this process that it did not start: what a killed minder left
// behind, which comes here when this process is a child subreaper (PR_SET_CHILD_SUBREAPER, set in
// main). They are told by their session: tasks always have another one than this process, minders
// never. Reaps by pid only, so libuv's own children are untouched. Returns how many are not gone
// yet; TaskProcess repeats it after a minder was lost, so only a stop in a hurry needs to call it.
std::size_t reap_strangers() noexcept;

}  // namespace pulse
