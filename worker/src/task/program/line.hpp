// Program lines: protocol 1 between the worker and a program; docs/programs.md is the contract.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "jobs/execution.hpp"
#include "task/process/line.hpp"

namespace pulse {

// The first line of a program.
struct Hello {
  std::size_t takes = 1;                     // jobs at once
  std::map<std::string, std::size_t> tasks;  // each with its jobs at once, at most `takes`
  std::string name;                          // of the program, for logs; may be empty
};

// Nothing when the line is no hello that the worker can serve; `why` says so.
std::optional<Hello> parse_hello(std::string_view line, std::string& why);

// The document that executables get, in one line, with the job's id and task in front. Ids and
// tokens are texts; the id in front names the database of the job, if the database has a name.
std::string program_job_line(const TaskInput& input);

// Tells a program that the job is to stop within `grace`.
void append_program_cancel_line(std::string& text, const LineJob& job, EndReason reason,
                                Duration grace);

// The job that a line is about, which need not be whole; nothing where the line names none.
std::optional<LineJob> job_of_line(std::string_view beginning);

// Whether a line has an id that this worker never gives: a text that is no number.
bool names_text_as_job(std::string_view line);

}  // namespace pulse
