// Objects of JSON: bodies of requests, answers of processes, lines of tasks.
#include "base/text/json_members.hpp"

#include "base/text/json_grammar.hpp"
#include "target.hpp"

namespace pulse::fuzz {

void json_members(std::string_view input) {
  constexpr std::size_t kMaxDepth = 32;
  if (!is_json_object(input, kMaxDepth)) return;
  promise(is_json(input), "an object is JSON");
  JsonMembers members(input);
  std::string_view key;
  std::string_view value;
  while (members.next(key, value)) {
    promise(key.begin() >= input.begin() && key.end() <= input.end(), "a key is a part of it");
    promise(value.begin() >= input.begin() && value.end() <= input.end(), "so is its value");
    promise(is_json(value), "a value is JSON");
  }
}

}  // namespace pulse::fuzz
