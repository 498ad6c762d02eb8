// The commands, each in a file of its own; main.cpp lists them.
#pragma once

namespace pulse::console {

class CommandLine;

void add_queues(CommandLine& line);
void add_workers(CommandLine& line);

}  // namespace pulse::console
