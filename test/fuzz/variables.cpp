// A file of variables for tasks.
#include "task/executable/variables.hpp"
#include "target.hpp"

namespace pulse::fuzz {

void variables(std::string_view input) {
  const auto parsed = parse_variables(input);
  if (const auto* problem = std::get_if<std::string>(&parsed)) {
    promise(problem->starts_with("line "), "a mistake is named by its line");
    return;
  }
  for (const std::string& variable : std::get<Variables>(parsed)) {
    const std::size_t equals = variable.find('=');
    promise(equals != std::string::npos && !name_problem(variable.substr(0, equals)),
            "each has a name that tasks may have");
    promise(variable.find('\0') == std::string::npos, "a variable ends at its end");
    promise(variable.size() <= input.size(), "and is no longer than what was read");
  }
}

}  // namespace pulse::fuzz
