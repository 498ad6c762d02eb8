// When the log may have colours and a line that is rewritten.
#include "base/log/terminal.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/ioctl.h>

#include <map>

#include "base/loop/unique_fd.hpp"

namespace pulse {
namespace {

class TerminalTest : public ::testing::Test {
 protected:
  TerminalTest() {
    int here = -1;
    int there = -1;
    EXPECT_EQ(openpty(&here, &there, nullptr, nullptr, nullptr), 0);
    here_.reset(here);
    there_.reset(there);
  }

  Terminal look(int descriptor) const {
    return Terminal::detect(descriptor, [this](const char* name) -> const char* {
      const auto variable = environment_.find(name);
      return variable == environment_.end() ? nullptr : variable->second.c_str();
    });
  }
  Terminal look() const { return look(there_.get()); }

  void resize(unsigned short columns) const {
    const winsize size{24, columns, 0, 0};
    ASSERT_EQ(ioctl(here_.get(), TIOCSWINSZ, &size), 0);
  }

  UniqueFd here_;
  UniqueFd there_;  // where a program writes
  std::map<std::string, std::string> environment_{{"TERM", "xterm"}};
};

TEST_F(TerminalTest, text_on_a_terminal_has_colours_and_is_rewritten) {
  EXPECT_TRUE(look().takes_colour(LogFormat::text));
  EXPECT_TRUE(look().takes_rewriting(LogFormat::text));
}

TEST_F(TerminalTest, json_stays_as_it_is) {
  EXPECT_FALSE(look().takes_colour(LogFormat::json));
  EXPECT_FALSE(look().takes_rewriting(LogFormat::json));
}

TEST_F(TerminalTest, a_pipe_takes_neither) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd reader(ends[0]);
  const UniqueFd writer(ends[1]);
  EXPECT_FALSE(look(writer.get()).takes_colour(LogFormat::text));
  EXPECT_FALSE(look(writer.get()).takes_rewriting(LogFormat::text));
}

TEST_F(TerminalTest, who_wants_no_colour_gets_the_rest) {
  environment_.emplace("NO_COLOR", "yes");
  EXPECT_FALSE(look().takes_colour(LogFormat::text));
  EXPECT_TRUE(look().takes_rewriting(LogFormat::text));
  environment_["NO_COLOR"].clear();
  EXPECT_TRUE(look().takes_colour(LogFormat::text)) << "an empty wish is none";
}

TEST_F(TerminalTest, one_that_knows_no_sequences_gets_none) {
  environment_["TERM"] = "dumb";
  EXPECT_FALSE(look().takes_colour(LogFormat::text));
  EXPECT_FALSE(look().takes_rewriting(LogFormat::text));
  environment_["TERM"].clear();
  EXPECT_FALSE(look().takes_colour(LogFormat::text));
  environment_.erase("TERM");
  EXPECT_FALSE(look().takes_colour(LogFormat::text));
  EXPECT_FALSE(look().takes_rewriting(LogFormat::text));
}

TEST_F(TerminalTest, its_width_is_what_it_is_now_or_80) {
  const Terminal terminal = look();
  EXPECT_EQ(terminal.columns(), 80) << "it does not say";
  resize(30);
  EXPECT_EQ(terminal.columns(), 30);
  resize(120);
  EXPECT_EQ(terminal.columns(), 120);
}

}  // namespace
}  // namespace pulse
