// Nothing that a terminal acts on leaves inert(), whatever goes in.
#include "base/text/inert.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/text/utf8.hpp"
#include "text/width.hpp"

namespace pulse::console {
namespace {

using namespace std::string_literals;

// Well-formed, and of characters that move nothing.
bool is_harmless(std::string_view text, Lines lines) {
  while (!text.empty()) {
    const std::size_t length = utf8_character_length(text);
    if (length == 0) return false;
    const auto byte = static_cast<unsigned char>(text[0]);
    const bool is_kept_newline = byte == '\n' && lines == Lines::kept;
    if ((byte < 0x20 && !is_kept_newline) || byte == 0x7F) return false;
    if (byte == 0xC2 && static_cast<unsigned char>(text[1]) < 0xA0) return false;  // C1
    text.remove_prefix(length);
  }
  return true;
}

TEST(Inert, LeavesWhatPeopleWrite) {
  for (const std::string text : {"plain", "Grüße, Ζεύς", "日本語", "a\\b", "😀", "<script>"}) {
    EXPECT_EQ(inert(text), text);
  }
}

TEST(Inert, SpellsControlCharacters) {
  EXPECT_EQ(inert("a\nb\tc\rd"), "a\\nb\\tc\\rd");
  EXPECT_EQ(inert("\033[31mred"), "\\x1b[31mred");
  EXPECT_EQ(inert("\0nul"s), "\\x00nul");
  EXPECT_EQ(inert("\xC2\x9B"
                  "2J"),
            "\\x9b2J");
  EXPECT_EQ(inert("\x7F"), "\\x7f");
}

TEST(Inert, SpellsWhatTurnsOrHidesText) {
  EXPECT_EQ(inert("a\u202Eb"), "a\\u{202e}b");
  EXPECT_EQ(inert("\u200B"), "\\u{200b}");
  EXPECT_EQ(inert("\uFEFF"), "\\u{feff}");
  EXPECT_EQ(inert("\U000E0041"), "\\u{e0041}");
  EXPECT_EQ(inert("\U0001FFFF"), "\\u{1ffff}");
}

TEST(Inert, SpellsATextOfBlanksWhereItIsToBeSeen) {
  EXPECT_EQ(visible(" "), "\\x20");
  EXPECT_EQ(visible("\u00A0\u3000"), "\\xa0\\u{3000}");
  for (const std::string text : {"", "a", " a ", "\u3000.", "\xFF", " \xFF"}) {
    EXPECT_EQ(visible(text), text);
  }
}

TEST(Inert, SpellsBytesThatAreNoUtf8) {
  EXPECT_EQ(inert("\xFF"), "\\xff");
  EXPECT_EQ(inert("\xC0\xAF"), "\\xc0\\xaf");
  EXPECT_EQ(inert("\xED\xA0\x80"), "\\xed\\xa0\\x80");
  EXPECT_EQ(inert("ok\xE2\x82"), "ok\\xe2\\x82");
}

TEST(Inert, KeepsLinesWhereTheyAreWanted) {
  EXPECT_EQ(inert("a\nb\r\n", Lines::kept), "a\nb\\r\n");
}

// Each byte and each pair of bytes, alone and within an escape sequence.
TEST(Inert, PassesNothingOfAnyTwoBytes) {
  for (int first = 0; first < 256; ++first) {
    for (int second = 0; second < 256; ++second) {
      const std::string pair{static_cast<char>(first), static_cast<char>(second)};
      ASSERT_TRUE(is_harmless(inert(pair), Lines::joined)) << first << ' ' << second;
      ASSERT_TRUE(is_harmless(inert("\033]0;" + pair + "\a"), Lines::joined));
    }
  }
}

TEST(Inert, EscapesInJsonWhatATerminalActsOn) {
  const std::string text = "\x7F\u0080\u009b2J\u202E\u2066\u200B\uFEFF\U000E0041";
  const std::string document = "{\n  \"a\": \"" + text + "\"\n}";
  const std::string harmless = inert_json(document);
  EXPECT_EQ(harmless,
            "{\n  \"a\": \"\\u007f\\u0080\\u009b2J\\u202e\\u2066\\u200b\\ufeff\\udb40\\udc41\"\n}");
  EXPECT_EQ(nlohmann::json::parse(harmless), nlohmann::json::parse(document));
}

TEST(Inert, LeavesOtherJsonAsItIs) {
  for (const std::string document :
       {R"({"n": 1.50, "s": "a\n\u001b \"\\"})", "[\"Grüße\", \"日本語\", \"😀\"]\r\n", "\t{}\n"}) {
    EXPECT_EQ(inert_json(document), document);
  }
  EXPECT_EQ(inert_json("\"\xFF\xE2\x82\""), "\"\\ufffd\\ufffd\\ufffd\"");
}

TEST(Inert, TakesALineOfAMegabyte) {
  const std::string line(1 << 20, '\033');
  EXPECT_EQ(inert(line).size(), line.size() * 4);
}

}  // namespace
}  // namespace pulse::console
