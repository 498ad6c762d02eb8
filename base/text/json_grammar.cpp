#include "base/text/json_grammar.hpp"

#include <algorithm>
#include <string>

#include "base/text/utf8.hpp"

namespace pulse {
namespace {

bool is_decimal(char character) { return character >= '0' && character <= '9'; }

bool is_hex_digit(char character) {
  return is_decimal(character) || (character >= 'a' && character <= 'f') ||
         (character >= 'A' && character <= 'F');
}

// Takes tokens from the front; text without a token stays in `rest_`.
class Tokens {
 public:
  explicit Tokens(std::string_view text) : rest_(text) {}

  bool is_at_end() const { return rest_.empty(); }

  bool take(std::string_view token) {
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }

  void skip_blanks() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\r\n"), rest_.size()));
  }

  bool take_string() {
    if (!take("\"")) return false;
    while (!rest_.empty() && rest_.front() != '"') {
      if (!take_character()) return false;
    }
    return take("\"");
  }

  bool take_key() {
    skip_blanks();
    if (!take_string()) return false;
    skip_blanks();
    return take(":");
  }

  bool take_number() {
    take("-");
    if (!take("0") && take_digits() == 0) return false;
    if (take(".") && take_digits() == 0) return false;
    if (!take("e") && !take("E")) return true;
    if (!take("+")) take("-");
    return take_digits() > 0;
  }

  // Text of one kind is of no other kind: a refused string has been taken in part.
  bool take_scalar() {
    if (rest_.starts_with('"')) return take_string();
    return take("null") || take("true") || take("false") || take_number();
  }

 private:
  bool take_character() {
    constexpr std::size_t kHexDigits = 4;
    if (take("\\u")) {
      const std::string_view code = rest_.substr(0, kHexDigits);
      rest_.remove_prefix(code.size());
      return code.size() == kHexDigits && std::all_of(code.begin(), code.end(), is_hex_digit);
    }
    if (take("\\")) {
      constexpr std::string_view kEscaped = "\"\\/bfnrt";
      if (rest_.empty() || kEscaped.find(rest_.front()) == std::string_view::npos) return false;
      rest_.remove_prefix(1);
      return true;
    }
    const std::size_t length = utf8_character_length(rest_);
    if (length == 0 || (length == 1 && rest_.front() < ' ')) return false;
    rest_.remove_prefix(length);
    return true;
  }

  std::size_t take_digits() {
    const auto end = std::find_if_not(rest_.begin(), rest_.end(), is_decimal);
    const auto count = static_cast<std::size_t>(end - rest_.begin());
    rest_.remove_prefix(count);
    return count;
  }

  std::string_view rest_;
};

}  // namespace

bool is_json(std::string_view text) {
  Tokens tokens(text);
  std::string open;  // the brackets that have to close, the innermost last
  for (bool wants_value = true;;) {
    tokens.skip_blanks();
    if (!wants_value) {
      if (open.empty()) return tokens.is_at_end();
      wants_value = tokens.take(",");
      if (wants_value && open.back() == '}' && !tokens.take_key()) return false;
      if (!wants_value && !tokens.take({&open.back(), 1})) return false;
      if (!wants_value) open.pop_back();
    } else if (tokens.take("{")) {
      tokens.skip_blanks();
      wants_value = !tokens.take("}");
      if (wants_value) open += '}';
      if (wants_value && !tokens.take_key()) return false;
    } else if (tokens.take("[")) {
      tokens.skip_blanks();
      wants_value = !tokens.take("]");
      if (wants_value) open += ']';
    } else {
      if (!tokens.take_scalar()) return false;
      wants_value = false;
    }
  }
}

}  // namespace pulse
