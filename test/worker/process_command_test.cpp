// NAME=COMMAND: how it is read, and which program it means.
#include "task/process/command.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace pulse {
namespace {

using Words = std::vector<std::string>;

Words words_of(const std::string& command) {
  const auto parsed = parse_process("mail=" + command);
  const auto* read = std::get_if<ProcessCommand>(&parsed);
  return read == nullptr ? Words{"refused"} : read->words;
}

std::string problem_of(const std::string& text) {
  const auto parsed = parse_process(text);
  const auto* problem = std::get_if<std::string>(&parsed);
  return problem == nullptr ? "" : *problem;
}

TEST(ProcessCommandTest, blanks_separate_words) {
  EXPECT_EQ(words_of("python3  mail.py\t--fast "), (Words{"python3", "mail.py", "--fast"}));
}

TEST(ProcessCommandTest, quotes_keep_blanks_and_may_stand_within_a_word) {
  EXPECT_EQ(words_of(R"(a 'b c' "d e" f'g 'h "")"), (Words{"a", "b c", "d e", "fg h", ""}));
}

TEST(ProcessCommandTest, a_backslash_takes_the_next_character_but_in_single_quotes) {
  EXPECT_EQ(words_of(R"(a\ b "c\"d\\" 'e\f')"), (Words{"a b", R"(c"d\)", R"(e\f)"}));
}

TEST(ProcessCommandTest, nothing_is_expanded) {
  EXPECT_EQ(words_of("echo $HOME *.py ~ ; # > x"),
            (Words{"echo", "$HOME", "*.py", "~", ";", "#", ">", "x"}));
}

TEST(ProcessCommandTest, the_name_ends_at_the_first_equals_sign) {
  const auto parsed = parse_process("mail/send=env A=b run");
  EXPECT_EQ(std::get<ProcessCommand>(parsed).task, "mail/send");
  EXPECT_EQ(std::get<ProcessCommand>(parsed).words, (Words{"env", "A=b", "run"}));
}

TEST(ProcessCommandTest, what_is_wrong_is_named) {
  EXPECT_EQ(problem_of("mail"), "'mail' is not NAME=COMMAND");
  EXPECT_EQ(problem_of("=run"), "'' is not a name for a task");
  EXPECT_EQ(problem_of("../x=run"), "'../x' is not a name for a task");
  EXPECT_EQ(problem_of("mail="), "'mail=' has no command");
  EXPECT_EQ(problem_of("mail=''"), "'mail=''' has no command");
  EXPECT_EQ(problem_of("mail=run 'a"), "'mail=run 'a' ends in the middle of a quoted word");
  EXPECT_EQ(problem_of("mail=run \\"), "'mail=run \\' ends in the middle of a quoted word");
}

class FindProgramTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = std::filesystem::temp_directory_path() / "pulse-program-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    place_ = std::filesystem::canonical(pattern);
    for (const char* folder : {"first", "second"}) {
      std::filesystem::create_directory(place_ / folder);
    }
  }
  void TearDown() override { std::filesystem::remove_all(place_); }

  std::string given_file(const std::string& name, bool is_executable) {
    const auto path = place_ / name;
    std::ofstream(path) << "#!/bin/sh\n";
    std::filesystem::permissions(path, std::filesystem::perms(is_executable ? 0755 : 0644));
    return path;
  }
  std::string path() const {
    return (place_ / "first").string() + ":" + (place_ / "second").string();
  }

  std::filesystem::path place_;
  TaskRefusal refusal_;
};

TEST_F(FindProgramTest, a_word_is_looked_for_in_the_path_in_order) {
  given_file("first/run", false);
  const std::string second = given_file("second/run", true);
  const auto program = find_program("run", path(), refusal_);
  ASSERT_TRUE(program);
  EXPECT_EQ(program->name, second);
  EXPECT_EQ(program->executable.path, second);
}

TEST_F(FindProgramTest, a_link_is_executed_as_the_file_and_called_as_the_link) {
  const std::string file = given_file("second/python3.11", true);
  std::filesystem::create_symlink(file, place_ / "first/python3");
  const auto program = find_program("python3", path(), refusal_);
  ASSERT_TRUE(program);
  EXPECT_EQ(program->name, (place_ / "first/python3").string());
  EXPECT_EQ(program->executable.path, file);
}

TEST_F(FindProgramTest, a_word_with_a_slash_is_a_path) {
  EXPECT_FALSE(find_program((place_ / "none").string(), path(), refusal_));
  EXPECT_EQ(refusal_.reason,
            "cannot start " + (place_ / "none").string() + ": No such file or directory");
  EXPECT_FALSE(refusal_.is_transient());
}

TEST_F(FindProgramTest, a_file_that_may_not_be_executed_is_no_program) {
  const std::string file = given_file("first/run", false);
  EXPECT_FALSE(find_program(file, path(), refusal_));
  EXPECT_EQ(refusal_.reason, "cannot start " + file + ": it is no executable file");
}

TEST_F(FindProgramTest, what_is_nowhere_is_refused_by_name) {
  EXPECT_FALSE(find_program("no-such-program", path(), refusal_));
  EXPECT_EQ(refusal_.reason, "cannot start no-such-program: it is not in PATH");
}

}  // namespace
}  // namespace pulse
