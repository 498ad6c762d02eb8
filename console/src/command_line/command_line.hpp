// The command line: a command adds its options to it, and what it does once they are read.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <optional>
#include <string>
#include <variant>

#include "command_line/console.hpp"

namespace pulse::console {

using Run = std::function<ExitStatus(Console& console)>;

class CommandLine {
 public:
  CommandLine();

  // A command of this name; `run` is called once the options that were added to it are read.
  CLI::App& add(const std::string& name, const std::string& description, Run run);
  // The same below another command.
  CLI::App& add_below(CLI::App& command, const std::string& name, const std::string& description,
                      Run run);

  // Nothing: options() and chosen() tell what to do. Else the status to end with; what the user is
  // told is printed.
  std::optional<ExitStatus> parse(int argc, const char* const* argv);

  CLI::App& root() { return app_; }
  const CommonOptions& options() const { return options_; }
  const Run& chosen() const { return chosen_; }

 private:
  CLI::App app_;
  CommonOptions options_;
  Run chosen_;
};

}  // namespace pulse::console
