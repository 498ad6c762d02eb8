// Variables of the application that reach tasks: --pass-env and --env-file.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace pulse {

// NAME=value each; a later one wins.
using Variables = std::vector<std::string>;

// What a file of variables says, or which line says nothing that can be understood:
//   NAME=value        as it is, but for blanks at its end
//   NAME="value"      a backslash takes the next character as it is
//   NAME='value'      as it is
//   export NAME=…     likewise
// and empty lines, and comments that begin with #. Nothing is expanded.
std::variant<Variables, std::string> parse_variables(std::string_view text);

// Why tasks may not be given a variable of this name; nothing for a name that is fine.
std::optional<std::string> name_problem(std::string_view name);

class TaskVariables {
 public:
  // Takes the variables of these names from `inherited` now; a missing one is no mistake. Those of
  // the file come behind, so they win.
  TaskVariables(const std::vector<std::string>& names, std::string file,
                const char* const* inherited);

  // Reads the file again; what is wrong with it leaves the variables as they were.
  std::optional<std::string> read_file();

  Variables list() const;

 private:
  const std::string file_;  // empty: none
  Variables passed_;
  Variables filed_;
};

}  // namespace pulse
