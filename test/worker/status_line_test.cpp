// A last line that is rewritten in place.
#include "base/log/status_line.hpp"

#include <gtest/gtest.h>

namespace pulse {
namespace {

const std::string kErase = "\r\x1b[K";

TEST(StatusLine, it_is_erased_before_lines_and_written_again_behind_them) {
  StatusLine status_line;
  EXPECT_EQ(status_line.write("one\n", "1 of 9"), "one\n1 of 9");
  EXPECT_EQ(status_line.write("two\nthree\n", "3 of 9"), kErase + "two\nthree\n3 of 9");
  EXPECT_EQ(status_line.write("four\n", "3 of 9"), kErase + "four\n3 of 9");
}

TEST(StatusLine, it_is_written_only_when_something_is_new) {
  StatusLine status_line;
  EXPECT_EQ(status_line.write("", "1 of 9"), "1 of 9");
  EXPECT_EQ(status_line.write("", "1 of 9"), "");
  EXPECT_EQ(status_line.write("", "2 of 9"), kErase + "2 of 9");
}

TEST(StatusLine, it_leaves_nothing_behind) {
  StatusLine status_line;
  EXPECT_EQ(status_line.write("one\n", "1 of 9"), "one\n1 of 9");
  EXPECT_EQ(status_line.write("end\n", ""), kErase + "end\n");
  EXPECT_EQ(status_line.write("", ""), "");
}

TEST(StatusLine, without_a_text_lines_are_as_they_were) {
  StatusLine status_line;
  EXPECT_EQ(status_line.write("one\n", ""), "one\n");
  EXPECT_EQ(status_line.write("two\n", ""), "two\n");
}

}  // namespace
}  // namespace pulse
