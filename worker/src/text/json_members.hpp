// Reading JSON without a tree, where its values go on as they are: numbers keep their digits and
// objects their order.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace pulse {

// Whether `text` is a JSON object with at most so many brackets within each other.
bool is_json_object(std::string_view text, std::size_t max_depth = std::string_view::npos);

// Walks over the members of such an object.
class JsonMembers {
 public:
  explicit JsonMembers(std::string_view object);

  // The next key, spelled as it is, and the text of its value; false behind the last.
  bool next(std::string_view& key, std::string_view& value);

 private:
  void skip_separators();
  std::string_view take(std::size_t length);
  std::size_t value_length() const;

  std::string_view rest_;
};

// What the text of a JSON string says; the text itself where half a pair of surrogates is in it,
// which says nothing.
std::string json_string_value(std::string_view text);

}  // namespace pulse
