// The tail of stderr: bounded, and always text that the database takes.
#include "base/text/stderr_tail.hpp"

#include <gtest/gtest.h>

#include <string>

#include "base/text/utf8.hpp"

namespace pulse {
namespace {

constexpr std::string_view kMark = "\xE2\x80\xA6";
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

std::string tail_of(std::string_view bytes, std::size_t limit = StderrTail::kMaxBytes) {
  StderrTail tail;
  tail.feed(bytes);
  return tail.text(limit);
}

TEST(StderrTail, short_text_is_kept_without_its_last_newline) {
  EXPECT_EQ(tail_of("first\nsecond: \xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80\r\n\n"),
            "first\nsecond: \xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80");
}

TEST(StderrTail, nothing_and_white_space_are_nothing) {
  EXPECT_EQ(tail_of(""), "");
  EXPECT_EQ(tail_of(" \n\t\n"), "");
  EXPECT_EQ(tail_of(std::string(100'000, '\n')), "");
}

TEST(StderrTail, what_is_not_utf8_is_replaced_byte_by_byte) {
  const std::string mark(kReplacement);
  EXPECT_EQ(tail_of("a\xFF"
                    "b"),
            "a" + mark + "b");
  EXPECT_EQ(tail_of("\xC0\xAF"), mark + mark);                        // overlong
  EXPECT_EQ(tail_of("\xED\xA0\x80"), mark + mark + mark);             // a surrogate
  EXPECT_EQ(tail_of("\xF4\x90\x80\x80"), mark + mark + mark + mark);  // beyond U+10FFFF
  EXPECT_EQ(tail_of("\xE2\x82"), mark + mark);                        // cut short
  EXPECT_EQ(tail_of(std::string_view("a\0b", 3)), "a" + mark + "b");
}

TEST(StderrTail, only_the_end_is_kept_and_the_cut_is_marked) {
  std::string all;
  for (int i = 0; i < 100'000; ++i) all += std::to_string(i) + '\n';
  const std::string text = tail_of(all);
  EXPECT_TRUE(text.starts_with(kMark));
  EXPECT_TRUE(text.ends_with("\n99998\n99999"));
  EXPECT_LE(text.size(), StderrTail::kMaxBytes);
  EXPECT_GT(text.size(), StderrTail::kMaxBytes / 2);
}

TEST(StderrTail, how_the_bytes_come_changes_nothing) {
  std::string all;
  for (int i = 0; i < 5'000; ++i) all += "\xE2\x82\xAC" + std::to_string(i);
  const std::string whole = tail_of(all);
  for (const std::size_t size : {1U, 2U, 7U, 4096U, 8192U, 8193U, 65536U}) {
    StderrTail tail;
    for (std::size_t at = 0; at < all.size(); at += size) {
      tail.feed(std::string_view(all).substr(at, size));
    }
    const std::string text = tail.text();
    EXPECT_TRUE(is_storable(text));
    EXPECT_LE(text.size(), StderrTail::kMaxBytes);
    // The same end; how far it reaches back depends on where the chunks were cut.
    const std::size_t common = StderrTail::kMaxBytes - 16;
    EXPECT_EQ(text.substr(text.size() - common), whole.substr(whole.size() - common)) << size;
  }
}

TEST(StderrTail, a_character_cut_in_its_middle_leaves_no_rubbish) {
  for (std::size_t extra = 0; extra < 4; ++extra) {
    std::string all(extra, 'x');
    for (int i = 0; i < 10'000; ++i) all += "\xF0\x9F\x98\x80";
    const std::string text = tail_of(all);
    EXPECT_EQ(text.find(kReplacement), std::string::npos);
    EXPECT_TRUE(is_storable(text));
  }
}

TEST(StderrTail, the_limit_holds_though_replacing_makes_text_longer) {
  for (const std::size_t limit : {3U, 4U, 5U, 6U, 100U, 8192U}) {
    const std::string text = tail_of(std::string(20'000, '\xFF'), limit);
    EXPECT_LE(text.size(), limit);
    EXPECT_TRUE(is_storable(text));
    EXPECT_TRUE(text.starts_with(kMark));
  }
}

TEST(StderrTail, every_pair_of_bytes_becomes_text) {
  for (int first = 0; first < 256; ++first) {
    for (int second = 0; second < 256; ++second) {
      const std::string bytes{static_cast<char>(first), static_cast<char>(second), '.'};
      EXPECT_TRUE(is_storable(tail_of(bytes))) << first << ' ' << second;
    }
  }
}

}  // namespace
}  // namespace pulse
