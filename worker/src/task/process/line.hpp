// Process lines: the lines between the worker and a persistent process; docs/tasks.md is the
// contract of both.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "jobs/execution.hpp"
#include "task/executable/environment.hpp"

namespace pulse {

// The document that executables get on stdin, in one line, with the job's id in front, as a number
// and as text.
void append_job_line(std::string& text, const TaskInput& input);

// Tells a process that the job is to stop within `grace`.
void append_cancel_line(std::string& text, std::int64_t job_id, EndReason reason, Duration grace);

// A job as a line names it: 17, or shop:17 of a database that has a name.
struct LineJob {
  LineJob() = default;
  LineJob(std::int64_t id, std::string database = {}) : id(id), database(std::move(database)) {}

  std::int64_t id = 0;
  std::string database;

  bool operator==(std::int64_t number) const { return database.empty() && id == number; }
  std::string text() const;
};

// Nothing for a text that names no job.
std::optional<LineJob> parse_line_job(std::string_view text);

// Line breaks of `text` from `begin` on become blanks, but for the last. A payload of type json
// keeps line breaks as written. They stand between tokens only: within a string JSON has none.
void put_in_one_line(std::string& text, std::size_t begin);

// A text that the code of a job logs.
struct LoggedText {
  std::string text;
  std::string level;  // as written
};

// A line of a process: how many jobs the process takes, the end of a job, or news of a job.
struct ProcessLine {
  std::optional<std::int64_t> takes;
  std::int64_t job_id = 0;
  std::string database;  // of the job, as LineJob has the name
  std::optional<ExecutionEnd> end;
  TaskProgress progress;
  std::optional<std::string> payload;  // JSON text: the rest of the job's work
  std::optional<LoggedText> logged;    // only programs say this, and `is_done`
  bool is_done = false;                // a transaction of the code has completed the job
};

// Nothing when the line means nothing; `why` says so.
std::optional<ProcessLine> parse_process_line(std::string_view line, std::string& why);

// Whether a line without meaning may have been meant as an answer: then a job would wait for the
// answer in vain. Other lines perhaps come from a library that does not know the use of stdout.
bool may_mean_answer(std::string_view line);

}  // namespace pulse
