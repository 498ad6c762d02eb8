// The commands, each command in a file of its own; main.cpp lists the commands.
#pragma once

namespace pulse::console {

class CommandLine;

void add_add(CommandLine& line);
void add_changes(CommandLine& line);
void add_doctor(CommandLine& line);
void add_failures(CommandLine& line);
void add_flows(CommandLine& line);
void add_job(CommandLine& line);
void add_jobs(CommandLine& line);
void add_operations(CommandLine& line);
void add_overview(CommandLine& line);
void add_queues(CommandLine& line);
void add_schedules(CommandLine& line);
void add_serve(CommandLine& line);
void add_token(CommandLine& line);
void add_tail(CommandLine& line);
void add_tasks(CommandLine& line);
void add_top(CommandLine& line);
void add_workers(CommandLine& line);

}  // namespace pulse::console
