// --process 'NAME=COMMAND': the program that runs the jobs of task NAME, one job after the other;
// and --program 'COMMAND'.
//
// COMMAND is split into words and executed; no shell reads COMMAND. Words are separated by blanks;
// text in '…' is taken as written; in "…", and outside of quotes, a backslash takes the next
// character as written. Nothing else is special: no variables, no patterns, no redirection.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "task/executable/tasks_folder.hpp"

namespace pulse {

struct ProcessCommand {
  std::string task;
  std::vector<std::string> words;  // the program first
};

// The command, or the fault of the text.
std::variant<ProcessCommand, std::string> parse_process(std::string_view text);

// The same of a text without NAME=, whose `task` is the file name of the program.
std::variant<ProcessCommand, std::string> parse_program(std::string_view text);

// Where programs are searched for without a PATH.
inline constexpr const char* kProgramPath = "/usr/bin:/bin";

struct Program {
  Executable executable;
  std::string name;  // the path that was found: some programs act by the name of the call
};

// The program of a first word: a path if the word has a slash, else the first match in `path`, a
// list like PATH. Starts in the current folder. A refusal is transient for want of descriptors or
// memory.
std::optional<Program> find_program(const std::string& word, std::string_view path,
                                    TaskRefusal& refusal);

}  // namespace pulse
