// Array literals: what goes in comes out, whatever it is.
#include "base/postgres/array_literal.hpp"

#include <gtest/gtest.h>

#include <random>

namespace pulse {
namespace {

using Texts = std::vector<std::optional<std::string>>;

// Reads a literal as the server does, for literals whose elements are all quoted or NULL.
Texts parsed(const std::string& literal) {
  Texts elements;
  std::size_t at = 1;
  while (literal.at(at) != '}') {
    if (literal[at] == ',') ++at;
    if (literal.compare(at, 4, "NULL") == 0) {
      elements.emplace_back();
      at += 4;
      continue;
    }
    EXPECT_EQ(literal.at(at), '"');
    std::string text;
    for (++at; literal.at(at) != '"'; ++at) {
      if (literal[at] == '\\') ++at;
      text += literal.at(at);
    }
    ++at;
    elements.emplace_back(text);
  }
  EXPECT_EQ(at + 1, literal.size());
  return elements;
}

TEST(ArrayLiteral, text_is_always_quoted) {
  EXPECT_EQ(array_literal(Texts{"a", "two words", ""}), R"({"a","two words",""})");
}

TEST(ArrayLiteral, quotes_and_backslashes_are_escaped) {
  EXPECT_EQ(array_literal(Texts{R"(say "hi")", R"(C:\dir)"}), R"({"say \"hi\"","C:\\dir"})");
}

TEST(ArrayLiteral, structure_inside_text_stays_text) {
  EXPECT_EQ(array_literal(Texts{"{1,2}", "},{"}), R"({"{1,2}","},{"})");
}

TEST(ArrayLiteral, a_missing_element_is_null_and_the_word_is_not) {
  EXPECT_EQ(array_literal(Texts{std::nullopt, "NULL"}), R"({NULL,"NULL"})");
}

TEST(ArrayLiteral, nothing_is_an_empty_array) {
  EXPECT_EQ(array_literal(Texts{}), "{}");
  EXPECT_EQ(array_literal(std::vector<std::int64_t>{}), "{}");
}

TEST(ArrayLiteral, numbers_and_truths_are_bare) {
  EXPECT_EQ(array_literal(std::vector<std::int64_t>{1, -2, INT64_MAX}),
            "{1,-2,9223372036854775807}");
  EXPECT_EQ(array_literal(std::vector<bool>{true, false}), "{t,f}");
}

TEST(ArrayLiteral, any_text_comes_back_as_it_was) {
  std::mt19937 engine(20260101);
  std::uniform_int_distribution<int> letter(1, 255);
  std::uniform_int_distribution<int> length(0, 12);
  const std::string nasty = "\"\\{},\n\t ";
  for (int round = 0; round < 500; ++round) {
    Texts texts;
    for (int i = length(engine); i > 0; --i) {
      std::string text;
      for (int j = length(engine); j > 0; --j) {
        const int c = letter(engine);
        text +=
            c % 2 == 0 ? nasty[static_cast<std::size_t>(c) % nasty.size()] : static_cast<char>(c);
      }
      texts.push_back(letter(engine) < 16 ? std::nullopt : std::optional(text));
    }
    ASSERT_EQ(parsed(array_literal(texts)), texts);
  }
}

}  // namespace
}  // namespace pulse
