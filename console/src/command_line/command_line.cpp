#include "command_line/command_line.hpp"

#include <algorithm>
#include <iostream>
#include <utility>

#include "base/text/inert.hpp"

namespace pulse::console {

CommandLine::CommandLine() : app_("Shows and steers the jobs of pg_pulse.", "pulse") {
  app_.add_option("-d,--database", options_.databases,
                  "Database name, connection string or URI (default: libpq's environment); given "
                  "several times, as NAME=DSN, for several databases")
      ->option_text("[NAME=]DSN ...")
      ->allow_extra_args(false);
  app_.add_option("--cluster", options_.cluster,
                  "The nodes of a cluster of Citus, in place of --database; for `pulse serve` "
                  "SIGHUP reads the cluster's list of nodes again")
      ->option_text("DSN");
  app_.add_flag("--json", options_.is_json, "Print JSON for scripts; ids are strings");
  app_.add_flag("--no-pager", options_.has_no_pager, "Never start PULSE_PAGER or PAGER");
  app_.add_flag("-y,--yes", options_.is_agreed, "Do what would be asked about, without a question");
  app_.set_version_flag("--version", "pulse " PULSE_VERSION);
  app_.require_subcommand(1);
  // So that the common options may stand behind a command, too.
  app_.fallthrough();
}

CLI::App& CommandLine::add(const std::string& name, const std::string& description, Run run,
                           Reach reach) {
  return add_below(app_, name, description, std::move(run), reach);
}

CLI::App& CommandLine::add_below(CLI::App& command, const std::string& name,
                                 const std::string& description, Run run, Reach reach) {
  CLI::App* added = command.add_subcommand(name, description);
  added->fallthrough();
  // Of a command and a command below, the user means the lower one.
  added->parse_complete_callback([this, added, reach, run = std::move(run)] {
    if (!added->get_subcommands().empty()) return;
    chosen_ = run;
    reach_ = reach;
  });
  return *added;
}

std::optional<ExitStatus> CommandLine::parse(int argc, const char* const* argv) {
  arguments_ = argv;
  try {
    app_.parse(argc, argv);
  } catch (const CLI::RequiredError& error) {
    const std::vector<std::string> words = app_.remaining();
    if (!app_.get_subcommands().empty()) {
      app_.exit(error, std::cout, std::cerr);
    } else if (words.empty()) {
      std::cerr << "pulse: which command? pulse --help lists them\n";
    } else {
      const char* kind = words.front().starts_with('-') ? "option" : "command";
      std::cerr << "pulse: there is no " << kind << " '" << inert(words.front())
                << "'; pulse --help lists them\n";
    }
    return ExitStatus::usage;
  } catch (const CLI::ParseError& error) {
    const int code = app_.exit(error, std::cout, std::cerr);
    return code == 0 ? ExitStatus::done : ExitStatus::usage;
  }
  return std::nullopt;
}

}  // namespace pulse::console
