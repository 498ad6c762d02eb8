// Whatever programs have written, what pulse prints and draws of it moves no cursor, and a script
// reads well-formed JSON.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text/inert.hpp"
#include "base/text/utf8.hpp"
#include "hostile_texts.hpp"
#include "output/record.hpp"
#include "output/table.hpp"
#include "text/width.hpp"
#include "top/view.hpp"

namespace pulse::console {
namespace {

// Well-formed UTF-8 without a control character, but newlines where lines are expected.
std::string text_problem(std::string_view text, bool may_have_lines) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_character_length(text.substr(at));
    const auto byte = static_cast<unsigned char>(text[at]);
    if (length == 0) return "no UTF-8 at " + std::to_string(at);
    const bool is_control = byte < 0x20 || byte == 0x7F;
    if (is_control && !(may_have_lines && byte == '\n')) return "control " + std::to_string(byte);
    if (byte == 0xC2 && static_cast<unsigned char>(text[at + 1]) < 0xA0) return "C1";
    at += length;
  }
  return {};
}

const Columns kHostileColumns{{"text", "text", Kind::text, 60},
                              {"state", "state", Kind::state},
                              {"number", "number", Kind::count},
                              {"time", "time", Kind::time},
                              {"names", "names", Kind::names}};

// The same text in a column of each kind; a server sends no NUL and no broken UTF-8, but is it one?
QueryResult hostile_rows(const std::string& text) {
  return {{"text", "state", "number", "time", "names"},
          {text, text, text, text,
           nlohmann::json({text}).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)}};
}

TEST(Hostile, HasTwoHundredTexts) { EXPECT_GE(hostile_texts().size(), 200U); }

TEST(Hostile, IsInert) {
  for (const std::string& text : hostile_texts()) {
    EXPECT_EQ(text_problem(inert(text), false), "") << inert(text).substr(0, 100);
    EXPECT_EQ(text_problem(inert(text, Lines::kept), true), "") << inert(text).substr(0, 100);
  }
}

TEST(Hostile, BreaksNoTable) {
  Style style;
  style.columns = 80;
  for (const std::string& text : hostile_texts()) {
    const std::string printed = table(kHostileColumns, hostile_rows(text), style);
    EXPECT_EQ(text_problem(printed, true), "") << inert(text).substr(0, 100);
    EXPECT_EQ(std::count(printed.begin(), printed.end(), '\n'), 2) << inert(text).substr(0, 100);
    EXPECT_EQ(text_problem(record(kHostileColumns, hostile_rows(text)[0], style), true), "");
  }
}

TEST(Hostile, IsReadAsJson) {
  for (const std::string& text : hostile_texts()) {
    const std::string printed = json_list(kHostileColumns, hostile_rows(text));
    EXPECT_TRUE(nlohmann::json::accept(printed)) << inert(printed).substr(0, 200);
  }
}

TEST(Hostile, IsDrawnInItsLine) {
  for (const std::string& text : hostile_texts()) {
    Choice choice;
    choice.selected.id = text;
    Pane pane{"x", "", kHostileColumns, "text", "x", nullptr, {}};
    for (const Line& line : pane_lines(pane, hostile_rows(text), choice, {10, 80})) {
      EXPECT_EQ(text_problem(line_text(line), false), "") << inert(text).substr(0, 100);
    }
  }
}

}  // namespace
}  // namespace pulse::console
