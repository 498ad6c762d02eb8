// pulse workers: who runs jobs, who did within the last day, and what tells workers to end.
#include "command_line/command_line.hpp"
#include "command_line/job_filter.hpp"
#include "commands/commands.hpp"
#include "text/inert.hpp"

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

// An order to one worker: asked about, because its running jobs may be given back.
void add_order(CommandLine& line, CLI::App& workers, const char* name, const char* description,
               const char* sql) {
  auto id = std::make_shared<std::string>();
  line.add_below(workers, name, description,
                 [=](Console& console) {
                   const std::string order = std::string(name) + " worker " + *id;
                   if (!is_confirmed(console, order + "?")) return ExitStatus::refused;
                   const QueryResult rows = console.database.query(sql, {*id});
                   console.output.print("worker " + *id + " is " +
                                        inert(rows[0].optional_text("status").value_or("gone")) +
                                        '\n');
                   return ExitStatus::done;
                 })
      .add_option("ID", *id, "Id of the worker")
      ->required()
      ->check(is_id());
}

}  // namespace

void add_workers(CommandLine& line) {
  auto with_ended = std::make_shared<bool>(false);
  CLI::App& workers = line.add("workers", "Workers that live", [with_ended](Console& console) {
    console.print_list(kColumns, console.database.query(kWorkers, {*with_ended ? "t" : "f"}));
    return ExitStatus::done;
  });
  workers.add_flag("-a,--all", *with_ended, "Those that ended within the last day, too");
  add_order(line, workers, "drain", "The worker takes no more jobs, and ends when it has none",
            "SELECT pulse.drain_worker($1::bigint) AS status");
  add_order(line, workers, "stop", "The worker ends now; its jobs are given back",
            "SELECT pulse.stop_worker($1::bigint) AS status");
}

}  // namespace pulse::console
