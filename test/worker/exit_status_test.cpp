// The words for the end of a task, and which ends are nobody's fault.
#include "supervised/exit_status.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>

namespace pulse {
namespace {

using minder::Report;
using Kind = ExecutionEnd::Kind;

TEST(ExecutionEnd, exit_codes_have_their_kinds) {
  EXPECT_EQ(describe_end({Report::kExited, 0, 0}, "/t/a").kind, Kind::succeeded);
  EXPECT_EQ(describe_end({Report::kExited, 1, 0}, "/t/a").kind, Kind::failed);
  EXPECT_EQ(describe_end({Report::kExited, 100, 0}, "/t/a").kind, Kind::failed_for_good);
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
    EXPECT_EQ(end.kind, Kind::not_started);
    EXPECT_TRUE(end.is_transient) << error;
  }
  EXPECT_TRUE(describe_end({Report::kNotStarted, ESTALE, Report::kChanged}, "/t/a").is_transient);
  EXPECT_TRUE(describe_end({Report::kNotStarted, ENOMEM, Report::kFork}, "/t/a").is_transient);
}

TEST(ExecutionEnd, a_file_that_cannot_be_executed_is_named_with_the_reason) {
  for (const int error : {ENOEXEC, ENOENT, EACCES, E2BIG}) {
    const ExecutionEnd end = describe_end({Report::kNotStarted, error, Report::kExecute}, "/t/a");
    EXPECT_FALSE(end.is_transient) << error;
    EXPECT_TRUE(end.error.starts_with("cannot execute /t/a: ")) << end.error;
  }
}

}  // namespace
}  // namespace pulse
