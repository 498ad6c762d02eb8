// pulse flows: jobs that were added together, and their cancellation.
#include "command_line/command_line.hpp"
#include "command_line/filter_options.hpp"
#include "commands/commands.hpp"
#include "list/lists.hpp"
#include "text/spelling.hpp"

namespace pulse::console {
namespace {

constexpr const char* kCancelFlow =
    "SELECT jobs, json_build_object('id', $1::bigint::text, 'cancelled', jobs) AS document"
    " FROM pulse.cancel_flow($1::bigint) AS jobs";

struct WantedFlow {
  std::optional<std::string> before;
  int limit = 50;
};

void add_cancel(CommandLine& line, CLI::App& flows) {
  auto id = std::make_shared<std::string>();
  line.add_below(flows, "cancel", "Cancels each live job of the flow",
                 [id](Console& console) {
                   if (!is_confirmed(console, "cancel all live jobs of flow " + *id + "?")) {
                     return ExitStatus::refused;
                   }
                   const QueryResult rows = console.database.query(kCancelFlow, {*id});
                   console.print_done(plural(rows[0].integer("jobs"), "job") + " cancelled",
                                      rows[0].text("document"));
                   return ExitStatus::done;
                 })
      .add_option("ID", *id, "Id of the flow")
      ->required()
      ->check(is_id());
}

}  // namespace

void add_flows(CommandLine& line) {
  auto wanted = std::make_shared<WantedFlow>();
  CLI::App& flows = line.add("flows", "Flows, the newest first", [wanted](Console& console) {
    console.print_list(
        flow_list().columns,
        console.database.query(flow_list().sql, {wanted->before, std::to_string(wanted->limit)}));
    return ExitStatus::done;
  });
  flows.add_option("-n,--limit", wanted->limit, "How many at most")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  flows.add_option("--before", wanted->before, "Only flows with a lower id: the next page")
      ->check(is_id());
  add_cancel(line, flows);
}

}  // namespace pulse::console
