// pulse top: the live screen.
#include "top/top.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "base/text/inert.hpp"
#include "command_line/command_line.hpp"
#include "commands/commands.hpp"
#include "database/interrupt.hpp"
#include "list/lists.hpp"

namespace pulse::console {
namespace {

ExitStatus show_top(Console& console, const std::string& interval) {
  if (isatty(STDIN_FILENO) != 1 || !console.output.style().is_terminal) {
    std::fputs("pulse: top needs a terminal; overview and the other commands do not\n", stderr);
    return ExitStatus::usage;
  }
  const bool is_one = console.nodes.empty();
  // A first query reports a fault as every command does, before the screen begins.
  if (is_one) console.database.query(overview_list().sql);
  console.database.on_notice = nullptr;
  const std::unique_ptr<Watched> watched =
      is_one ? watch_database(console.database) : watch_nodes(std::move(console.nodes));
  // From here on an interrupt has to leave the terminal unchanged, and the screen takes care of the
  // terminal.
  leave_interrupts();
  try {
    Screen screen(console.output.style().has_colours);
    Top(*watched, screen, *parse_duration(interval)).run();
  } catch (const NoScreen& problem) {
    const char* term = std::getenv("TERM");
    std::fprintf(stderr, "pulse: top cannot draw on the terminal '%s': %s\n",
                 inert(term == nullptr ? "" : term).c_str(), problem.what());
    std::fputs("  hint: TERM names it; most terminals are an xterm\n", stderr);
    return ExitStatus::usage;
  }
  return ExitStatus::done;
}

}  // namespace

void add_top(CommandLine& line) {
  auto interval = std::make_shared<std::string>("1s");
  line.add(
          "top", "Everything live, on the whole screen",
          [interval](Console& console) { return show_top(console, *interval); }, Reach::all_at_once)
      .add_option("-i,--interval", *interval,
                  "The least time from one reading to the next, as 500ms or 5s")
      ->check([](const std::string& text) {
        const auto parsed = parse_duration(text);
        const bool is_right = parsed && *parsed >= Duration(100);
        return is_right ? std::string() : "'" + text + "' is no duration of at least 100ms";
      })
      ->capture_default_str();
}

}  // namespace pulse::console
