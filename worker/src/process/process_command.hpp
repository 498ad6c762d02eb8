// --process 'NAME=COMMAND': the program that runs the jobs of task NAME, one after another.
//
// COMMAND is split into words and executed; no shell reads it. Words are separated by blanks; what
// is in '…' is taken as it is; in "…", and outside of quotes, a backslash takes the next character
// as it is. Nothing else is special: no variables, no patterns, no redirection.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "executable/tasks_folder.hpp"

namespace pulse {

struct ProcessCommand {
  std::string task;
  std::vector<std::string> words;  // the program first
};

// The command, or what is wrong with the text.
std::variant<ProcessCommand, std::string> parse_process(std::string_view text);

// Where programs are looked for without a PATH.
inline constexpr const char* kProgramPath = "/usr/bin:/bin";

struct Program {
  Executable executable;
  std::string name;  // the path as it was found: some programs look what they are called as
};

// The program of a first word: a path if there is a slash in it, else looked for in `path`, as PATH
// has it. Starts in the current folder. A refusal is transient for want of descriptors or memory.
std::optional<Program> find_program(const std::string& word, std::string_view path,
                                    TaskRefusal& refusal);

}  // namespace pulse
