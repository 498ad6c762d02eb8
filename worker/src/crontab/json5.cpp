#include "crontab/json5.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>

#include "base/text/json_text.hpp"
#include "base/text/parse_number.hpp"

namespace pulse {
namespace {

constexpr int kMaxDepth = 100;
// The blanks of JSON5. Pasted text has some that are shown as a space.
constexpr std::array<std::string_view, 25> kBlanks{
    " ",      "\t",     "\n",     "\v",     "\f",     "\r",     "\u00a0", "\u1680", "\u2000",
    "\u2001", "\u2002", "\u2003", "\u2004", "\u2005", "\u2006", "\u2007", "\u2008", "\u2009",
    "\u200a", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000", "\ufeff"};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' ||
         static_cast<unsigned char>(c) >= 0x80;
}

// Appends a character; half of a surrogate pair alone becomes U+FFFD.
void append_utf8(std::string& text, std::uint32_t code) {
  if (code >= 0xD800 && code < 0xE000) code = 0xFFFD;
  const auto put = [&text](std::uint32_t byte) { text += static_cast<char>(byte); };
  if (code < 0x80) return put(code);
  if (code < 0x800) {
    put(0xC0 | code >> 6);
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3F));
  } else {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F));
  }
  put(0x80 | (code & 0x3F));
}

// Each reading function takes a value from the front and appends it to the JSON; false: the text is
// wrong there.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  bool read_document() { return read_value() && skip_blanks() && rest_.empty(); }
  std::string take_json() { return std::move(json_); }
  std::size_t left() const { return rest_.size(); }

 private:
  bool begins(std::string_view start) const { return rest_.starts_with(start); }
  bool take(std::string_view start) {
    if (!begins(start)) return false;
    rest_.remove_prefix(start.size());
    return true;
  }
  bool put(std::string_view text) {
    json_ += text;
    return true;
  }
  bool take_blank() {
    return std::any_of(kBlanks.begin(), kBlanks.end(), [this](auto blank) { return take(blank); });
  }
  bool begins_name() const {
    return !rest_.empty() && is_name(rest_.front()) &&
           std::none_of(kBlanks.begin(), kBlanks.end(),
                        [this](auto blank) { return begins(blank); });
  }

  // False in a comment without an end.
  bool skip_blanks() {
    while (true) {
      if (take_blank()) continue;
      if (take("//")) {
        rest_.remove_prefix(std::min(rest_.find('\n'), rest_.size()));
      } else if (take("/*")) {
        const std::size_t end = rest_.find("*/");
        if (end == std::string_view::npos) return false;
        rest_.remove_prefix(end + 2);
      } else {
        return true;
      }
    }
  }

  bool read_value() {
    if (!skip_blanks() || rest_.empty()) return false;
    switch (rest_.front()) {
      case '{': return read_list('}', [this] { return read_member(); });
      case '[': return read_list(']', [this] { return read_value(); });
      case '"':
      case '\'': return read_string();
      default: return begins_name() && !is_digit(rest_.front()) ? read_word() : read_number();
    }
  }

  template <typename ReadItem>
  bool read_list(char end, ReadItem read_item) {
    if (++depth_ > kMaxDepth) return false;
    json_ += rest_.front();
    rest_.remove_prefix(1);
    for (bool is_first = true;; is_first = false) {
      if (!skip_blanks() || rest_.empty()) return false;
      if (rest_.front() == end) break;
      if (!is_first) json_ += ',';
      if (!read_item() || !skip_blanks()) return false;
      if (!take(",") && (rest_.empty() || rest_.front() != end)) return false;
    }
    rest_.remove_prefix(1);
    json_ += end;
    --depth_;
    return true;
  }

  bool read_member() {
    const bool is_quoted = rest_.front() == '"' || rest_.front() == '\'';
    if (!(is_quoted ? read_string() : read_name()) || !skip_blanks() || !take(":")) return false;
    json_ += ':';
    return read_value();
  }

  bool read_name() {
    std::string name;
    while (true) {
      if (begins_name()) {
        name += rest_.front();
        rest_.remove_prefix(1);
      } else if (!take("\\u") || !read_code(4, name)) {
        break;
      }
    }
    if (name.empty() || is_digit(name.front())) return false;
    append_json_string(json_, name);
    return true;
  }

  bool read_word() {
    for (const std::string_view word : {"true", "false", "null"}) {
      if (take(word)) return !begins_name() && put(word);
    }
    return false;
  }

  bool read_string() {
    const char quote = rest_.front();
    rest_.remove_prefix(1);
    std::string value;
    while (!rest_.empty() && rest_.front() != quote) {
      const char c = rest_.front();
      rest_.remove_prefix(1);
      if (c == '\n' || c == '\r') return false;
      if (c != '\\') {
        value += c;
      } else if (!read_escape(value)) {
        return false;
      }
    }
    if (rest_.empty()) return false;
    rest_.remove_prefix(1);
    append_json_string(json_, value);
    return true;
  }

  bool read_escape(std::string& value) {
    constexpr std::string_view kLetters = "bfnrtv0";
    constexpr std::string_view kMeanings("\b\f\n\r\t\v\0", 7);
    if (take("\r\n") || take("\n") || take("\r")) return true;  // the string goes on
    if (take("x")) return read_code(2, value);
    if (take("u")) return read_code(4, value);
    if (rest_.empty() || (is_digit(rest_.front()) && rest_.front() != '0')) return false;
    const std::size_t letter = kLetters.find(rest_.front());
    value += letter == std::string_view::npos ? rest_.front() : kMeanings[letter];
    rest_.remove_prefix(1);
    return true;
  }

  std::optional<std::uint32_t> take_hex(std::size_t digits) {
    const std::string_view text = rest_.substr(0, digits);
    std::uint32_t code = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), code, 16);
    if (text.size() < digits || error != std::errc() || end != text.data() + digits) return {};
    rest_.remove_prefix(digits);
    return code;
  }

  bool read_code(std::size_t digits, std::string& value) {
    auto code = take_hex(digits);
    if (!code) return false;
    if (*code >= 0xD800 && *code < 0xDC00 && take("\\u")) {
      const auto low = take_hex(4);
      if (!low) return false;
      if (*low >= 0xDC00 && *low < 0xE000) {
        code = 0x10000 + ((*code - 0xD800) << 10) + (*low - 0xDC00);
      } else {
        append_utf8(value, *code);
        code = low;
      }
    }
    append_utf8(value, *code);
    return true;
  }

  std::string_view take_digits() {
    std::size_t length = 0;
    while (length < rest_.size() && is_digit(rest_[length])) ++length;
    const std::string_view digits = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return digits;
  }

  // Refuses a number that is infinite in 64 bits.
  bool read_number() {
    const std::size_t begin = json_.size();
    if (!take("+") && take("-")) json_ += '-';
    if (take("0x") || take("0X")) return read_hexadecimal();
    const std::string_view whole = take_digits();
    const bool is_octal = whole.size() > 1 && whole.front() == '0';
    put(whole.empty() ? "0" : whole);
    std::string_view fraction;
    if (take(".")) fraction = take_digits();
    if ((whole.empty() && fraction.empty()) || is_octal) return false;
    if (!fraction.empty()) put(".") && put(fraction);
    if (take("e") || take("E")) {
      put("e");
      if (!take("+") && take("-")) put("-");
      const std::string_view exponent = take_digits();
      if (exponent.empty()) return false;
      put(exponent);
    }
    if (!parse_number<double>(std::string_view(json_).substr(begin))) return false;
    return !begins_name();
  }

  bool read_hexadecimal() {
    std::uint64_t number = 0;
    const auto [end, error] =
        std::from_chars(rest_.data(), rest_.data() + rest_.size(), number, 16);
    if (error != std::errc()) return false;
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    json_ += std::to_string(number);
    return !begins_name();
  }

  std::string_view rest_;
  std::string json_;
  int depth_ = 0;
};

}  // namespace

std::variant<JsonText, std::string> json_of_json5(std::string_view text) {
  Reader reader(text);
  if (!reader.read_document()) {
    return "is no JSON5 from character " + std::to_string(text.size() - reader.left() + 1) + " on";
  }
  return JsonText{reader.take_json()};
}

}  // namespace pulse
