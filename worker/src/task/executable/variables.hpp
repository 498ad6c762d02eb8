// Task variables: variables of the application that reach tasks: --pass-env and --env-file.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/text/trusted_file.hpp"

namespace pulse {

// NAME=value each; a later one wins.
using Variables = std::vector<std::string>;

// The variables of a file, or which line cannot be understood:
//   NAME=value        as written, without blanks at the end
//   NAME="value"      a backslash takes the next character as written
//   NAME='value'      as written
//   export NAME=…     likewise
// and empty lines, and comments that begin with #. Nothing is expanded.
std::variant<Variables, std::string> parse_variables(std::string_view text);

// Why tasks may not be given a variable of this name; nothing for a valid name.
std::optional<std::string> name_problem(std::string_view name);

class TaskVariables {
 public:
  // Takes the variables named in `names` from `inherited` now; a missing variable is no mistake.
  // The file's variables come behind, and so win.
  TaskVariables(const std::vector<std::string>& names, std::string file,
                const char* const* inherited);

  // Reads the file again; a fault in the file leaves the variables unchanged and is returned.
  std::optional<FileRefusal> read_file();

  Variables list() const;

 private:
  const std::string file_;  // empty: none
  Variables passed_;
  Variables filed_;
};

}  // namespace pulse
