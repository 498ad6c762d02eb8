// A last line that is rewritten in place.
#include "log/status_line.hpp"

#include <gtest/gtest.h>

namespace pulse {
namespace {

const std::string kErase = "\r\x1b[K";

TEST(LastLine, it_is_erased_before_lines_and_written_again_behind_them) {
  LastLine last_line;
  EXPECT_EQ(last_line.write("one\n", "1 of 9"), "one\n1 of 9");
  EXPECT_EQ(last_line.write("two\nthree\n", "3 of 9"), kErase + "two\nthree\n3 of 9");
  EXPECT_EQ(last_line.write("four\n", "3 of 9"), kErase + "four\n3 of 9");
}

TEST(LastLine, it_is_written_only_when_something_is_new) {
  LastLine last_line;
  EXPECT_EQ(last_line.write("", "1 of 9"), "1 of 9");
  EXPECT_EQ(last_line.write("", "1 of 9"), "");
  EXPECT_EQ(last_line.write("", "2 of 9"), kErase + "2 of 9");
}

TEST(LastLine, it_leaves_nothing_behind) {
  LastLine last_line;
  EXPECT_EQ(last_line.write("one\n", "1 of 9"), "one\n1 of 9");
  EXPECT_EQ(last_line.write("end\n", ""), kErase + "end\n");
  EXPECT_EQ(last_line.write("", ""), "");
}

TEST(LastLine, without_a_text_lines_are_as_they_were) {
  LastLine last_line;
  EXPECT_EQ(last_line.write("one\n", ""), "one\n");
  EXPECT_EQ(last_line.write("two\n", ""), "two\n");
}

}  // namespace
}  // namespace pulse
