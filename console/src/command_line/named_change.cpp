#include "command_line/named_change.hpp"

#include "base/text/inert.hpp"

namespace pulse::console {

void add_named_change(CommandLine& line, CLI::App& parent, const char* noun, NamedChange change) {
  auto name = std::make_shared<std::string>();
  const auto run = [=](Console& console) {
    const std::string what = std::string(noun) + ' ' + inert(*name);
    if (change.is_asked && !is_confirmed(console, std::string(change.name) + ' ' + what + "?")) {
      return ExitStatus::refused;
    }
    const QueryResult done = console.database.query(change.sql, {*name});
    console.print_done(what + ' ' + change.done, done[0].text("document"));
    return ExitStatus::done;
  };
  line.add_below(parent, change.name, change.description, run)
      .add_option("NAME", *name, std::string("Name of the ") + noun)
      ->required();
}

}  // namespace pulse::console
