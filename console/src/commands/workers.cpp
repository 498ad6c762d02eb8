// pulse workers: who runs jobs, and who did within the last day.
#include "commands/command_line.hpp"
#include "commands/commands.hpp"

namespace pulse::console {
namespace {

constexpr const char* kWorkers =
    "SELECT id, name, hostname, pid, status, running_jobs,"
    " extract(epoch FROM silent_for) AS silent_for, attached, to_json(tasks) AS tasks,"
    " started_at, ended_at, reason"
    " FROM pulse.worker_status WHERE ended_at IS NULL OR $1::boolean"
    " ORDER BY ended_at DESC NULLS FIRST, id LIMIT 1000";

const Columns kColumns{
    {"worker", "id", Kind::id},
    {"name", "name"},
    {"host", "hostname", Kind::text, 24},
    {"pid", "pid", Kind::number},
    {"status", "status", Kind::state},
    {"jobs", "running_jobs", Kind::count},
    {"silent for", "silent_for", Kind::seconds},
    {"attached", "attached", Kind::boolean},
    {"started", "started_at", Kind::time},
    {"ended", "ended_at", Kind::time},
    {"tasks", "tasks", Kind::names},
    {"reason", "reason"},
};

}  // namespace

void add_workers(CommandLine& line) {
  auto with_ended = std::make_shared<bool>(false);
  CLI::App& command = line.add("workers", "Workers that live", [with_ended](Console& console) {
    console.print_list(kColumns, console.database.query(kWorkers, {*with_ended ? "t" : "f"}));
    return ExitStatus::done;
  });
  command.add_flag("-a,--all", *with_ended, "Those that ended within the last day, too");
}

}  // namespace pulse::console
