// Variables of the application that reach tasks.
#include "task/executable/variables.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "no_descriptors.hpp"

namespace pulse {
namespace {

Variables must_parse(std::string_view text) {
  auto parsed = parse_variables(text);
  if (const auto* problem = std::get_if<std::string>(&parsed)) {
    ADD_FAILURE() << *problem;
    return {};
  }
  return std::get<Variables>(std::move(parsed));
}

std::string problem_of(std::string_view text) {
  const auto parsed = parse_variables(text);
  const auto* problem = std::get_if<std::string>(&parsed);
  return problem == nullptr ? "none" : *problem;
}

TEST(ParseVariables, lines_are_names_and_values) {
  EXPECT_EQ(must_parse("# comment\n\nRAILS_ENV=production\r\n  export A=1 2 \nB=\nC='a\"b'"),
            (Variables{"RAILS_ENV=production", "A=1 2", "B=", "C=a\"b"}));
}

TEST(ParseVariables, nothing_is_expanded) {
  EXPECT_EQ(must_parse("A=$HOME\nB=\"$HOME `x` \\\"q\\\" \\\\n\"\nURL=postgres://u:p@h/d?a=b#c"),
            (Variables{"A=$HOME", "B=$HOME `x` \"q\" \\n", "URL=postgres://u:p@h/d?a=b#c"}));
}

TEST(ParseVariables, what_is_no_variable_is_named_by_its_line) {
  EXPECT_EQ(problem_of("A=1\nnonsense\n"), "line 2 is not NAME=value");
  EXPECT_EQ(problem_of("A='1\n"), "line 1 has a quote without an end, or something behind it");
  EXPECT_EQ(problem_of("A=\"1\" 2"), "line 1 has a quote without an end, or something behind it");
  EXPECT_EQ(problem_of("1A=1"), "line 1 names '1A', which is not the name of a variable");
  EXPECT_EQ(problem_of("PULSE_TOKEN=1"),
            "line 1 names 'PULSE_TOKEN', which tells tasks of their jobs");
  EXPECT_EQ(problem_of(std::string_view("A=\0", 3)), "line 1 has a NUL");
}

std::string fault_of(TaskVariables& variables) {
  const auto refusal = variables.read_file();
  EXPECT_FALSE(refusal && refusal->is_transient);
  return refusal ? refusal->reason : "none";
}

class TaskVariablesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = std::filesystem::temp_directory_path() / "pulse-variables-XXXXXX";
    close(mkstemp(path_.data()));
  }
  void TearDown() override { std::filesystem::remove(path_); }
  void given_file(const std::string& text) { std::ofstream(path_) << text; }

  std::string path_;
};

TEST_F(TaskVariablesTest, only_named_variables_are_passed_on) {
  const char* const inherited[] = {"A=1", "AB=2", "SECRET=3", nullptr};
  TaskVariables variables({"A", "AB", "NOT_SET"}, "", inherited);
  EXPECT_FALSE(variables.read_file());
  EXPECT_EQ(variables.list(), (Variables{"A=1", "AB=2"}));
}

TEST_F(TaskVariablesTest, the_file_comes_behind_and_is_read_again) {
  const char* const inherited[] = {"A=1", nullptr};
  given_file("A=2\n");
  TaskVariables variables({"A"}, path_, inherited);
  EXPECT_FALSE(variables.read_file());
  EXPECT_EQ(variables.list(), (Variables{"A=1", "A=2"}));
  given_file("nonsense\n");
  EXPECT_EQ(fault_of(variables), path_ + ": line 1 is not NAME=value");
  EXPECT_EQ(variables.list(), (Variables{"A=1", "A=2"})) << "what was read before";
  given_file("B=3\n");
  EXPECT_FALSE(variables.read_file());
  EXPECT_EQ(variables.list(), (Variables{"A=1", "B=3"}));
}

TEST_F(TaskVariablesTest, a_file_that_other_users_may_write_is_refused) {
  given_file("A=1\n");
  chmod(path_.c_str(), 0666);
  TaskVariables variables({}, path_, nullptr);
  EXPECT_EQ(fault_of(variables),
            path_ + " may be written by everybody; take it away with chmod go-w");
}

TEST_F(TaskVariablesTest, a_file_of_another_user_is_refused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  constexpr uid_t kOther = 12345;
  given_file("A=1\n");
  ASSERT_EQ(chown(path_.c_str(), kOther, kOther), 0);
  TaskVariables variables({}, path_, nullptr);
  EXPECT_EQ(fault_of(variables),
            path_ + " is owned by user 12345, neither by root nor by the user of this process");
}

// Whoever may write the folder may put another file in the place of this one.
TEST_F(TaskVariablesTest, a_folder_that_other_users_may_write_is_refused) {
  const std::string folder = path_ + ".d";
  ASSERT_EQ(mkdir(folder.c_str(), 0755), 0);
  const std::string file = folder + "/file";
  std::ofstream(file) << "A=1\n";
  TaskVariables variables({}, file, nullptr);
  EXPECT_FALSE(variables.read_file());
  const std::string link = folder + ".link";
  ASSERT_EQ(symlink(file.c_str(), link.c_str()), 0);
  TaskVariables linked({}, link, nullptr);
  EXPECT_FALSE(linked.read_file());
  for (const mode_t mode : {0777, 0775}) {
    chmod(folder.c_str(), mode);
    const std::string by = mode == 0777 ? "everybody" : "its group";
    const std::string problem =
        folder + " may be written by " + by + "; take it away with chmod go-w";
    EXPECT_EQ(fault_of(variables), problem);
    EXPECT_EQ(fault_of(linked), problem) << "also where a link leads to it";
  }
  chmod(folder.c_str(), 01777);
  EXPECT_FALSE(variables.read_file()) << "nobody takes the files of others there";
  std::filesystem::remove(link);
  std::filesystem::remove_all(folder);
}

TEST_F(TaskVariablesTest, without_descriptors_a_later_try_may_succeed) {
  given_file("A=1\n");
  TaskVariables variables({}, path_, nullptr);
  {
    const NoDescriptors none;
    const auto refusal = variables.read_file();
    ASSERT_TRUE(refusal);
    EXPECT_EQ(refusal->reason, "cannot read " + path_ + ": Too many open files");
    EXPECT_TRUE(refusal->is_transient);
  }
  EXPECT_EQ(fault_of(variables), "none");
}

TEST_F(TaskVariablesTest, what_is_no_file_is_told) {
  TaskVariables nowhere({}, "/no/such/file", nullptr);
  EXPECT_EQ(fault_of(nowhere), "cannot read /no/such/file: No such file or directory");
  TaskVariables folder({}, "/usr", nullptr);
  EXPECT_EQ(fault_of(folder), "/usr is not a regular file");
}

}  // namespace
}  // namespace pulse
