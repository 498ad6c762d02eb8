// What users say of the server to connect to: a name, a connection string, a URI.
#include "base/postgres/connection_options.hpp"

#include <algorithm>

#include "target.hpp"

namespace pulse::fuzz {
namespace {

std::vector<std::string> values_of(const ConnectOptions& options) {
  std::vector<std::string> values;
  for (const auto& option : options.list()) values.push_back(option.value);
  return values;
}

// Turned as often as it has hosts, a list is what it was.
void check_rotation(ConnectOptions options) {
  const auto before = values_of(options);
  const bool had_several = options.has_several_hosts();
  options.rotate_hosts();
  promise(options.has_several_hosts() == had_several, "turning keeps the number of hosts");
  const auto after = values_of(options);
  for (std::size_t i = 0; i < before.size(); ++i) {
    std::string sorted_before = before[i];
    std::string sorted_after = after[i];
    std::sort(sorted_before.begin(), sorted_before.end());
    std::sort(sorted_after.begin(), sorted_after.end());
    promise(sorted_before == sorted_after, "turning loses nothing");
  }
}

}  // namespace

void connection_options(std::string_view input) {
  const std::string database(input.substr(0, input.find('\0')));
  const auto read = ConnectOptions::read(database, "a fuzzed worker");
  if (const auto* problem = std::get_if<std::string>(&read)) {
    promise(!problem->empty(), "a problem is told");
    return;
  }
  const auto& options = std::get<ConnectOptions>(read);
  promise(options.deadline().count() > 0, "a connection has a deadline");
  for (const auto& option : options.list()) {
    promise(!option.keyword.empty(), "an option has a keyword");
    promise(option.value.find('\0') == std::string::npos, "and a value that ends once");
  }
  check_rotation(options);
}

}  // namespace pulse::fuzz
