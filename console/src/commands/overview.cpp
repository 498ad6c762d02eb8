// pulse overview: everything in one row.
#include "command_line/command_line.hpp"
#include "commands/commands.hpp"
#include "list/lists.hpp"
#include "output/record.hpp"

namespace pulse::console {

void add_overview(CommandLine& line) {
  line.add("overview", "Everything in one row", [](Console& console) {
    const QueryResult rows = console.database.query(overview_list().sql);
    const Columns& columns = overview_list().columns;
    if (console.options.is_json) {
      console.print_json(json_of(columns, rows[0]) + '\n');
    } else {
      console.output.print(record(columns, rows[0], console.output.style()));
    }
    return ExitStatus::done;
  });
}

}  // namespace pulse::console
