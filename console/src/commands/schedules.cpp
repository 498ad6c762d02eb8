// pulse schedules: the schedules that add jobs by the clock, and the commands that change them.
#include <array>

#include "command_line/add_list.hpp"
#include "command_line/command_line.hpp"
#include "command_line/named_change.hpp"
#include "commands/commands.hpp"
#include "list/lists.hpp"

namespace pulse::console {
namespace {

// The schedule after the change.
#define PULSE_SCHEDULE(function)                                                             \
  "SELECT json_build_object('name', s.name, 'paused', s.paused, 'next_due', s.next_due) AS " \
  "document FROM pulse." function "($1) AS s"

constexpr std::array<NamedChange, 3> kScheduleChanges{{
    {"pause", "Adds no job until it is resumed", PULSE_SCHEDULE("pause_schedule"), "paused"},
    {"resume", "Goes on with its next due time", PULSE_SCHEDULE("resume_schedule"), "resumed"},
    {"run", "Adds its job now",
     "SELECT json_build_object('id', j.id::text, 'state', j.state) AS document"
     " FROM pulse.run_schedule_now($1) AS j",
     "has added its job", true},
}};

void add_next(CommandLine& line, CLI::App& schedules) {
  auto schedule = std::make_shared<std::string>();
  CLI::App& command =
      line.add_below(schedules, "next", "The next due times", [schedule](Console& console) {
        console.print_list(
            {{"due", "due", Kind::time}},
            console.database.query("SELECT due FROM pulse.next_runs($1, 10) AS due", {*schedule}));
        return ExitStatus::done;
      });
  command.add_option("SCHEDULE", *schedule, "Name of the schedule")->required();
}

}  // namespace

void add_schedules(CommandLine& line) {
  CLI::App& schedules =
      add_list(line, "schedules", "Schedules, by their next due time", schedule_list());
  for (const NamedChange& change : kScheduleChanges) {
    add_named_change(line, schedules, "schedule", change);
  }
  add_next(line, schedules);
}

}  // namespace pulse::console
