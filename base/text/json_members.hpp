// JSON members: reads JSON without a tree, where values are passed on unchanged: numbers keep
// digits and objects keep order.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace pulse {

// Whether `text` is a JSON object with at most so many brackets within each other.
bool is_json_object(std::string_view text, std::size_t max_depth = std::string_view::npos);

// Walks over the members of a text that is_json_object() accepts.
class JsonMembers {
 public:
  explicit JsonMembers(std::string_view object);

  // The next key, as written, and the text of the value; false behind the last member.
  bool next(std::string_view& key, std::string_view& value);

 private:
  void skip_separators();
  std::string_view take(std::size_t length);
  std::size_t value_length() const;

  std::string_view rest_;
};

// The value of a JSON string; the text itself where the string holds half a pair of surrogates,
// which has no value.
std::string json_string_value(std::string_view text);

}  // namespace pulse
