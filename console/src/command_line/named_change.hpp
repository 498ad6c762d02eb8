// A command below another that changes what has a name: a queue, a task or a schedule.
#pragma once

#include "command_line/command_line.hpp"

namespace pulse::console {

struct NamedChange {
  const char* name;  // of the command
  const char* description;
  const char* sql;   // with the name as its parameter; its column `document` is the JSON of it
  const char* done;  // "queue x" and this tell what happened
  bool is_asked = false;
};

// `noun` is what has the name, as the user is told.
void add_named_change(CommandLine& line, CLI::App& parent, const char* noun, NamedChange change);

}  // namespace pulse::console
