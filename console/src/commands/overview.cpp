// pulse overview: everything in one row.
#include <algorithm>
#include <array>
#include <string_view>

#include "command_line/command_line.hpp"
#include "commands/commands.hpp"
#include "list/lists.hpp"
#include "output/record.hpp"

namespace pulse::console {

namespace {

// The columns of a table in which each node has a row; JSON has all fields.
Columns columns_beside_other_nodes() {
  constexpr std::array<std::string_view, 9> kShown{
      "ready",     "oldest_due_age", "future", "parked_full",  "running",
      "completed", "failed",         "sweeps", "workers_alive"};
  Columns columns = overview_list().columns;
  for (Column& column : columns) {
    const bool is_shown = std::find(kShown.begin(), kShown.end(), column.field) != kShown.end();
    if (!is_shown) column.title.clear();
  }
  return columns;
}

ExitStatus show_overview(Console& console) {
  const QueryResult rows = console.database.query(overview_list().sql);
  const Columns& columns = overview_list().columns;
  if (console.taken != nullptr) {
    console.print_list(columns_beside_other_nodes(), rows);
  } else if (console.options.is_json) {
    console.print_json(json_of(columns, rows[0]) + '\n');
  } else {
    console.output.print(record(columns, rows[0], console.output.style()));
  }
  return ExitStatus::done;
}

}  // namespace

void add_overview(CommandLine& line) {
  line.add("overview", "Everything in one row", show_overview, Reach::each_node);
}

}  // namespace pulse::console
