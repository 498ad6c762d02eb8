// Names with values, as a query or a form of HTML spells them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pulse::console {

class Form {
 public:
  // Empty for a missing name; of several values, the first.
  const std::string& get(std::string_view name) const;
  std::optional<std::string> find(std::string_view name) const;
  std::vector<std::string> all(std::string_view name) const;
  void add(std::string name, std::string value);

  const std::vector<std::pair<std::string, std::string>>& entries() const { return entries_; }

 private:
  std::vector<std::pair<std::string, std::string>> entries_;
};

// Reads "a=1&b=x%20y". Nothing for a text that is no form: a bad escape, a NUL, no UTF-8, or more
// than 1,000 names.
std::optional<Form> parse_form(std::string_view text);

}  // namespace pulse::console
