// pulse overview: everything in one row.
#include "command_line/command_line.hpp"
#include "commands/commands.hpp"
#include "output/record.hpp"

namespace pulse::console {
namespace {

constexpr const char* kOverview =
    "SELECT at, ready, future, due_next_minute, parked_full, parked_paused, parked_future,"
    " parked_waiting, running, extract(epoch FROM oldest_due_age) AS oldest_due_age,"
    " completed, failed, quarantined, cancelled, expired, workers_alive, workers_draining,"
    " workers_silent, workers_lost, next_schedule, next_schedule_at, installation, claims, sweeps,"
    " swept_at, to_json(estimated) AS estimated FROM pulse.overview";

const Columns kColumns{
    {"at", "at", Kind::time},
    {"ready", "ready", Kind::count},
    {"oldest due for", "oldest_due_age", Kind::seconds},
    {"future", "future", Kind::count},
    {"due next minute", "due_next_minute", Kind::count},
    {"parked, queue full", "parked_full", Kind::count},
    {"parked, queue paused", "parked_paused", Kind::count},
    {"parked, future", "parked_future", Kind::count},
    {"parked, after others", "parked_waiting", Kind::count},
    {"running", "running", Kind::count},
    {"completed last minute", "completed", Kind::count},
    {"failed last minute", "failed", Kind::count},
    {"quarantined last minute", "quarantined", Kind::count},
    {"cancelled last minute", "cancelled", Kind::count},
    {"expired last minute", "expired", Kind::count},
    {"workers alive", "workers_alive", Kind::count},
    {"workers draining", "workers_draining", Kind::count},
    {"workers silent", "workers_silent", Kind::count},
    {"workers lost last hour", "workers_lost", Kind::count},
    {"next schedule", "next_schedule"},
    {"next schedule at", "next_schedule_at", Kind::time},
    {"installation", "installation"},
    {"claims are on", "claims", Kind::boolean},
    {"dead workers are noticed", "sweeps", Kind::boolean},
    {"last sweep", "swept_at", Kind::time},
    {"estimated", "estimated", Kind::names, 80},
};

}  // namespace

void add_overview(CommandLine& line) {
  line.add("overview", "Everything in one row", [](Console& console) {
    const QueryResult rows = console.database.query(kOverview);
    console.output.print(console.options.is_json
                             ? json_of(kColumns, rows[0]) + '\n'
                             : record(kColumns, rows[0], console.output.look()));
    return ExitStatus::done;
  });
}

}  // namespace pulse::console
