// What tasks wrote, as elements of SQL arrays: read back as PostgreSQL reads them, they are the
// same.
#include "base/postgres/array_literal.hpp"

#include <cstring>

#include "base/postgres/query_result.hpp"
#include "target.hpp"

namespace pulse::fuzz {
namespace {

using Element = std::optional<std::string>;

// Reads as array_in() does, but takes nothing that it would not need.
class Reader {
 public:
  explicit Reader(std::string_view literal) : rest_(literal) {}

  std::vector<Element> read() {
    std::vector<Element> elements;
    take('{');
    while (!rest_.empty() && rest_.front() != '}') {
      if (!elements.empty()) take(',');
      elements.push_back(element());
    }
    take('}');
    promise(rest_.empty(), "nothing stands behind an array");
    return elements;
  }

 private:
  void take(char wanted) {
    promise(!rest_.empty() && rest_.front() == wanted, "an array has its structure");
    rest_.remove_prefix(1);
  }

  Element element() {
    constexpr std::string_view kNull = "NULL";
    if (rest_.starts_with(kNull)) {
      rest_.remove_prefix(kNull.size());
      return std::nullopt;
    }
    std::string text;
    take('"');
    while (!rest_.empty() && rest_.front() != '"') {
      if (rest_.front() == '\\') rest_.remove_prefix(1);
      promise(!rest_.empty(), "an element ends");
      text += rest_.front();
      rest_.remove_prefix(1);
    }
    take('"');
    return text;
  }

  std::string_view rest_;
};

}  // namespace

// Elements end with a line; one that begins with byte 1 is NULL.
void array_literal(std::string_view input) {
  std::vector<Element> elements;
  std::vector<std::string> texts;
  std::vector<std::int64_t> numbers;
  for (const std::string_view piece : pieces_of(input, '\n')) {
    elements.push_back(piece.starts_with('\1') ? Element() : Element(piece));
    texts.emplace_back(piece);
    std::int64_t number = 0;
    std::memcpy(&number, piece.data(), std::min(piece.size(), sizeof number));
    numbers.push_back(number);
  }
  promise(Reader(pulse::array_literal(elements)).read() == elements, "elements stay the same");
  promise(Reader(pulse::array_literal(texts)).read() ==
              std::vector<Element>(texts.begin(), texts.end()),
          "texts stay the same");
  const QueryResult rows({"numbers"}, {pulse::array_literal(numbers)});
  promise(rows[0].integers("numbers") == numbers, "numbers stay the same");
}

}  // namespace pulse::fuzz
