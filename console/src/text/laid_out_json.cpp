#include "text/laid_out_json.hpp"

#include <algorithm>

namespace pulse::console {
namespace {

// Deeper documents would be mostly white space.
constexpr std::size_t kMaxDepth = 64;

bool is_space(char letter) {
  return letter == ' ' || letter == '\t' || letter == '\n' || letter == '\r';
}

class Layout {
 public:
  std::string of(std::string_view document) {
    for (const char letter : document) {
      if (is_in_text_) {
        take_text(letter);
      } else if (!is_space(letter)) {
        take(letter);
      }
    }
    return std::move(text_);
  }

 private:
  void take_text(char letter) {
    text_ += letter;
    if (is_escaped_) {
      is_escaped_ = false;
    } else if (letter == '\\') {
      is_escaped_ = true;
    } else if (letter == '"') {
      is_in_text_ = false;
    }
  }

  void take(char letter) {
    const bool closes = letter == '}' || letter == ']';
    if (closes && depth_ > 0) --depth_;
    // An empty object or array stays in one piece.
    if (has_opened_ != closes) new_line();
    has_opened_ = letter == '{' || letter == '[';
    text_ += letter;
    if (has_opened_) ++depth_;
    if (letter == ':') text_ += ' ';
    if (letter == ',') new_line();
    is_in_text_ = letter == '"';
  }

  void new_line() { text_ += '\n' + std::string(2 * std::min(depth_, kMaxDepth), ' '); }

  std::string text_;
  std::size_t depth_ = 0;
  bool has_opened_ = false;  // the last token opened an object or an array
  bool is_in_text_ = false;
  bool is_escaped_ = false;
};

}  // namespace

std::string laid_out_json(std::string_view document) { return Layout().of(document); }

}  // namespace pulse::console
