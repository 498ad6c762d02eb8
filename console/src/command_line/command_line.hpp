// The command line: a command adds options to it, and a function that runs once they are read.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <optional>
#include <string>
#include <variant>

#include "command_line/console.hpp"

namespace pulse::console {

using Run = std::function<ExitStatus(Console& console)>;

// What a command does with several databases.
enum class Reach {
  one_database,  // the command needs one
  each_node,     // the command prints a list, of each node
  all_at_once,   // the command itself deals with Console::nodes
};

class CommandLine {
 public:
  CommandLine();

  // Adds a command of this name; parse() lets the command choose `run` once its options are read.
  CLI::App& add(const std::string& name, const std::string& description, Run run,
                Reach reach = Reach::one_database);
  // The same below another command.
  CLI::App& add_below(CLI::App& command, const std::string& name, const std::string& description,
                      Run run, Reach reach = Reach::one_database);

  // Returns nothing where options() and chosen() tell the command to run. Else returns the status
  // to end with; the function has printed the message for the user.
  std::optional<ExitStatus> parse(int argc, const char* const* argv);

  const char* const* arguments() const { return arguments_; }
  CLI::App& root() { return app_; }
  const CommonOptions& options() const { return options_; }
  const Run& chosen() const { return chosen_; }
  Reach reach() const { return reach_; }  // of the chosen command

 private:
  CLI::App app_;
  const char* const* arguments_ = nullptr;
  CommonOptions options_;
  Run chosen_;
  Reach reach_ = Reach::one_database;
};

}  // namespace pulse::console
