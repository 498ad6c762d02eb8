// A command below another command that changes an object with a name: a queue, a task or a
// schedule.
#pragma once

#include "command_line/command_line.hpp"

namespace pulse::console {

struct NamedChange {
  const char* name;  // of the command
  const char* description;
  const char* sql;   // with the name as parameter; the column `document` is the JSON of the object
  const char* done;  // "queue x" and this word tell the user the change
  bool is_asked = false;
};

// `noun` is the kind of the named object, as the user reads it.
void add_named_change(CommandLine& line, CLI::App& parent, const char* noun, NamedChange change);

}  // namespace pulse::console
