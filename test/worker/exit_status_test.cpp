// The words for the end of a task, and which ends are nobody's fault.
#include "task/supervised/exit_status.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/loop/unique_fd.hpp"

namespace pulse {
namespace {

using minder::Report;

TEST(ExecutionEnd, exit_codes_have_their_kinds) {
  EXPECT_EQ(describe_end({Report::kExited, 0, 0}, "/t/a").kind, ExecutionEnd::Kind::succeeded);
  EXPECT_EQ(describe_end({Report::kExited, 1, 0}, "/t/a").kind, ExecutionEnd::Kind::failed);
  EXPECT_EQ(describe_end({Report::kExited, 100, 0}, "/t/a").kind,
            ExecutionEnd::Kind::failed_for_good);
  EXPECT_EQ(describe_end({Report::kExited, 101, 0}, "/t/a").error, "exited with code 101");
}

TEST(ExecutionEnd, signals_are_named_where_they_have_a_name) {
  EXPECT_EQ(describe_end({Report::kSignalled, SIGSEGV, 0}, "").error,
            "ended by signal 11 (SIGSEGV)");
  EXPECT_EQ(describe_end({Report::kSignalled, 40, 0}, "").error, "ended by signal 40");
}

TEST(ExecutionEnd, who_stopped_it_is_kept) {
  EXPECT_EQ(describe_end({Report::kSignalled, SIGTERM, Report::kSilence}, "").stopped_by,
            ExecutionEnd::StoppedBy::silence);
  EXPECT_EQ(describe_end({Report::kExited, 0, Report::kWorker}, "").stopped_by,
            ExecutionEnd::StoppedBy::worker);
}

TEST(ExecutionEnd, want_of_resources_is_not_the_fault_of_the_task) {
  for (const int error : {EAGAIN, ENOMEM, EMFILE, ENFILE, ETXTBSY}) {
    const ExecutionEnd end = describe_end({Report::kNotStarted, error, Report::kExecute}, "/t/a");
    EXPECT_EQ(end.kind, ExecutionEnd::Kind::not_started);
    EXPECT_TRUE(end.is_transient) << error;
  }
  EXPECT_TRUE(describe_end({Report::kNotStarted, ESTALE, Report::kChanged}, "/t/a").is_transient);
  EXPECT_TRUE(describe_end({Report::kNotStarted, ENOMEM, Report::kFork}, "/t/a").is_transient);
  EXPECT_TRUE(describe_end({Report::kNotStarted, ETIME, Report::kTooLate}, "/t/a").is_transient);
}

TEST(ExecutionEnd, a_file_that_cannot_be_executed_is_named_with_the_reason) {
  for (const int error : {ENOEXEC, ENOENT, EACCES, E2BIG}) {
    const ExecutionEnd end = describe_end({Report::kNotStarted, error, Report::kExecute}, "/t/a");
    EXPECT_FALSE(end.is_transient) << error;
    EXPECT_TRUE(end.error.starts_with("cannot execute /t/a: ")) << end.error;
  }
}

// What is told of a script with this text that the kernel did not execute.
std::string told_of(const std::string& text, int error) {
  std::string path = std::filesystem::temp_directory_path() / "pulse-script-XXXXXX";
  const UniqueFd file(mkstemp(path.data()));
  std::ofstream(path) << text;
  std::string told = describe_end({Report::kNotStarted, error, Report::kExecute}, path).error;
  std::filesystem::remove(path);
  return told.substr(told.find(path) + path.size() + 2);
}

TEST(ExecutionEnd, an_interpreter_that_is_not_there_is_named) {
  EXPECT_EQ(told_of("#! /usr/bin/pyton3 -u\nprint(1)\n", ENOENT),
            "its first line names /usr/bin/pyton3, which was not found");
  EXPECT_EQ(told_of("#!\n", ENOENT), "its first line names , which was not found");
  EXPECT_EQ(told_of("\x7f"
                    "ELF",
                    ENOENT),
            "the interpreter it names was not found");
}

TEST(ExecutionEnd, a_script_of_another_system_is_told_with_what_mends_it) {
  const std::string crlf = told_of("#!/bin/sh\r\necho\r\n", ENOENT);
  EXPECT_TRUE(
      crlf.starts_with("its first line ends in CR LF, so /bin/sh with a CR is searched for"))
      << crlf;
  EXPECT_TRUE(crlf.find("sed -i 's/\\r$//' ") != std::string::npos) << crlf;
  const std::string marked = told_of("\xEF\xBB\xBF#!/bin/sh\n", ENOEXEC);
  EXPECT_TRUE(marked.starts_with("a byte order mark stands before its #!")) << marked;
}

}  // namespace
}  // namespace pulse
