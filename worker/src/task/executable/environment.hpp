// Task environment: how a task is told of its job: environment variables and the document on stdin.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "jobs/job.hpp"

namespace pulse {

// The whole environment of the task, as NAME=value. From this process come only PATH, HOME, LANG,
// LC_*, TZ, TMPDIR, USER, LOGNAME and SHELL, so no PG* variable and no secret reaches a task. Then
// PULSE_JOB_ID, PULSE_TOKEN, PULSE_TASK, PULSE_ATTEMPT, PULSE_MAX_ATTEMPTS, PULSE_RECOVERED (empty
// unless recovered), PULSE_QUEUE (empty without a queue), PULSE_PRIORITY, PULSE_SCHEDULED_FOR
// (empty without a schedule), PULSE_WORKER (name), PULSE_WORKER_ID, PULSE_FD=3, TRACEPARENT (of a
// job with a trace), PULSE_DATABASE (the name of a database that has a name), and the eight
// GRAPHILE_WORKER_* variables of Graphile Worker. Checkpoint and last error are on stdin only: a
// variable holds at most 128 KiB. `more` holds the operator's variables for tasks (--pass-env,
// --env-file), and wins over inherited variables.
std::vector<std::string> task_environment(
    const TaskInput& input, const char* const* inherited,
    const std::vector<std::string>& more = std::vector<std::string>());

// The environment of a process that runs the jobs of a task: inherited variables, `more`, and
// PULSE_TASK.
std::vector<std::string> process_environment(
    std::string_view task, const char* const* inherited,
    const std::vector<std::string>& more = std::vector<std::string>());

// Which variables of the worker a program gets.
enum class ProgramVariables {
  all,    // the program is the application: all but PG* and PULSE_*, which may hold secrets
  clean,  // those that a task gets
};

// The environment of a program: inherited variables, `more`, PULSE_FD=3, and PYTHONUNBUFFERED=1, by
// which prints of Python come at once.
std::vector<std::string> program_environment(ProgramVariables wish, const char* const* inherited,
                                             const std::vector<std::string>& more);

// How ids and tokens stand in a document: as numbers, and as text in members of their own, or as
// text alone.
enum class IdForm { number, text };

// {"payload":…,"job":{…}}: the payload keeps its own text, every number and the order of keys. The
// job object has the columns of claimed_job by name, `attempt` beside `attempts`, the worker, and
// the name of a database that has a name.
// The numbers that may exceed 2^53 are there as text too, at the end: `id_text` and the like.
std::string task_stdin(const TaskInput& input);
void append_task_stdin(std::string& text, const TaskInput& input, IdForm form = IdForm::number);

}  // namespace pulse
