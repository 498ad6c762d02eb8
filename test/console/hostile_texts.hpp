// Texts that try what a terminal, a table or a script would act on.
#pragma once

#include <string>
#include <vector>

namespace pulse::console {

inline std::string utf8_of(char32_t character) {
  std::string text;
  const auto add = [&](char32_t bits) { text += static_cast<char>(bits); };
  if (character < 0x80) {
    add(character);
  } else if (character < 0x800) {
    add(0xC0 | character >> 6);
    add(0x80 | (character & 0x3F));
  } else if (character < 0x10000) {
    add(0xE0 | character >> 12);
    add(0x80 | (character >> 6 & 0x3F));
    add(0x80 | (character & 0x3F));
  } else {
    add(0xF0 | character >> 18);
    add(0x80 | (character >> 12 & 0x3F));
    add(0x80 | (character >> 6 & 0x3F));
    add(0x80 | (character & 0x3F));
  }
  return text;
}

// Sequences: clear, move, colour, title, clipboard, link, report, charset, reset, bells.
inline std::vector<std::string> sequences() {
  using namespace std::string_literals;
  return {
      "\033[2J\033[H",
      "\033[31;1mred",
      "\033]0;title\a",
      "\033]52;c;cm0gLXJm\a",
      "\033]8;;http://evil.example\033\\link",
      "\033[6n",
      "\033[c",
      "\033P$q\"p\033\\",
      "\033c",
      "\033(0",
      "\033[?1049h",
      "\033[?25l",
      "\033[20t",
      "\033[21t",
      "\033[1;1r",
      "\033#8",
      "\033[!p",
      "\033_G\033\\",
      "\033^x\033\\",
      "\033X\033\\",
      "\a\a\a",
      "\b\b\b\b",
      "a\rb",
      "\033[3J",
      "\033[99999999999C",
      "\033[38;2;1;2;3mx",
      "\033]1337;File=:AAAA\a",
      "\033]4;0;?\a",
      "\033[5i",
      "\033[0c\033[>c",
      "\033\033\033",
      "x\033",
      "\033[",
      "\x9B"
      "2J",
      "\xC2\x9B"
      "2J",
      "\xC2\x9D"
      "0;x\xC2\x9C",
      "\x0E\x0F",
      "\x1A",
      "\x1C\x1D\x1E\x1F",
  };
}

// NUL, lines, tabs.
inline std::vector<std::string> controls_and_lines() {
  using namespace std::string_literals;
  return {
      "\0"s,
      "a\0b"s,
      "\n",
      "a\nb\nc",
      "\r\n",
      "\t\t",
      "\v\f",
      std::string(3, '\0'),
      "pulse: done\n$ ",
      "0 | f | x\n(1 row)\n",
  };
}

// What is no UTF-8.
inline std::vector<std::string> broken_utf8() {
  using namespace std::string_literals;
  return {
      "\xFF",
      "\xFE\xFF",
      "\xC0\x80",
      "\xC1\xBF",
      "\xE0\x80\x80",
      "\xED\xA0\x80",
      "\xED\xBF\xBF",
      "\xF4\x90\x80\x80",
      "\xF8\x88\x80\x80\x80",
      "\xC3",
      "\xE2\x82",
      "\xF0\x9F\x98",
      "\x80",
      "\xBF\xBF",
      "a\xC3(",
      "\xF0\x28\x8C\x28",
      std::string(1000, '\xFF'),
  };
}

// For pages, shells, SQL, JSON, formats and spreadsheets.
inline std::vector<std::string> for_other_readers() {
  using namespace std::string_literals;
  return {
      "<script>alert(1)</script>",
      "\"><img src=x onerror=alert(1)>",
      "javascript:alert(1)",
      "</td></tr></table>",
      "&lt;b&gt;",
      "'; DROP TABLE pulse.job; --",
      "$(reboot)",
      "`reboot`",
      "; rm -rf /",
      "| sh",
      "%s%n%x",
      "{{7*7}}",
      "${jndi:ldap://x}",
      "\\u0000",
      "\\x1b[31m",
      "\"\\",
      "{\"a\":",
      "=1+1",
      "-flag",
      "--yes",
      "../../etc/passwd",
      "[y/N] y",
  };
}

// Length and width.
inline std::vector<std::string> long_and_wide() {
  using namespace std::string_literals;
  return {
      std::string(1 << 20, 'x'),
      std::string(1 << 20, '\033'),
      std::string(10'000, ' '),
      std::string(10'000, '\n'),
      "日本語日本語日本語",
      "👩‍👩‍👧‍👦",
      "e\u0301\u0302\u0303",
      "a" + std::string("\u0336\u0336\u0336"),
      "\uFDFA",
      "Z̴̢a̷͝l̸g̵o",
      "ﷺ",
      "\u1160",
  };
}

inline std::vector<std::string> hostile_texts() {
  std::vector<std::string> texts;
  for (const auto& more :
       {sequences(), controls_and_lines(), broken_utf8(), for_other_readers(), long_and_wide()}) {
    texts.insert(texts.end(), more.begin(), more.end());
  }
  const auto add_each = [&](char32_t first, char32_t last, const std::string& around) {
    for (char32_t character = first; character <= last; ++character)
      texts.push_back(around + utf8_of(character) + around);
  };
  add_each(0x00, 0x1F, "c");
  add_each(0x7F, 0x9F, "d");
  add_each(0x200B, 0x200F, "");
  add_each(0x2028, 0x202E, "user");
  add_each(0x2060, 0x206F, "x");
  add_each(0xFFF9, 0xFFFF, "");
  add_each(0xE0000, 0xE0007, "tag");
  for (const char32_t character : {0xAD, 0x34F, 0x61C, 0xFEFF, 0x3164, 0xFE0F, 0xE000, 0x1FFFF})
    texts.push_back("h" + utf8_of(character));
  return texts;
}

}  // namespace pulse::console
