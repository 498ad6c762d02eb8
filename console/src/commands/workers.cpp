// pulse workers: lists workers that live or ended within the last day, and tells workers to end.
#include "base/text/inert.hpp"
#include "command_line/command_line.hpp"
#include "command_line/filter_options.hpp"
#include "commands/commands.hpp"
#include "list/lists.hpp"

namespace pulse::console {
namespace {

// An order to one worker: the command asks the user first, because the worker may give running jobs
// back.
void add_order(CommandLine& line, CLI::App& workers, const char* name, const char* description,
               const std::string& function) {
  const std::string sql =
      "SELECT status, json_build_object('id', $1::bigint::text, 'status',"
      " status) AS document FROM " +
      function + "($1::bigint) AS status";
  auto id = std::make_shared<std::string>();
  line.add_below(workers, name, description,
                 [=](Console& console) {
                   const std::string order = std::string(name) + " worker " + *id;
                   if (!is_confirmed(console, order + "?")) return ExitStatus::refused;
                   const QueryResult rows = console.database.query(sql.c_str(), {*id});
                   const std::string status = rows[0].optional_text("status").value_or("gone");
                   console.print_done("worker " + *id + " is " + inert(status),
                                      rows[0].text("document"));
                   return ExitStatus::done;
                 })
      .add_option("ID", *id, "Id of the worker")
      ->required()
      ->check(is_id());
}

}  // namespace

void add_workers(CommandLine& line) {
  auto with_ended = std::make_shared<bool>(false);
  CLI::App& workers = line.add(
      "workers", "Workers that live",
      [with_ended](Console& console) {
        console.print_list(worker_list(),
                           console.database.query(worker_list().sql, {*with_ended ? "t" : "f"}));
        return ExitStatus::done;
      },
      Reach::each_node);
  workers.add_flag("-a,--all", *with_ended, "Those that ended within the last day, too");
  add_order(line, workers, "drain", "The worker takes no more jobs, and ends when it has none",
            "pulse.drain_worker");
  add_order(line, workers, "stop", "The worker ends now; its jobs are given back",
            "pulse.stop_worker");
}

}  // namespace pulse::console
