// Who runs the jobs of a process, and what becomes of them when it does not do as it should.
#include "process_bench.hpp"

namespace pulse {
namespace {

using namespace std::chrono_literals;

class ProcessTasksTest : public ProcessBench {};

TEST_F(ProcessTasksTest, one_process_runs_one_job_after_the_other) {
  given_script("while " + kTake + "[ -n \"$line\" ]; do " + kDone + "done");
  for (const std::int64_t id : {1, 2, 3}) start(id);
  const std::string process = result_of(1);
  EXPECT_EQ(result_of(2), process);
  EXPECT_EQ(result_of(3), process);
}

TEST_F(ProcessTasksTest, gets_one_job_unless_it_says_otherwise) {
  given_script(kTake + kBegun + "read -r more");
  start(1);
  start(2);
  wait_for_message(1);
  EXPECT_FALSE(tasks_.at(1)->take_back()) << "it runs";
  EXPECT_TRUE(tasks_.at(2)->take_back()) << "it waits";
  tasks_.erase(2);
  EXPECT_EQ(processes_->extra(), 0U);
}

TEST_F(ProcessTasksTest, gets_as_many_as_it_says) {
  given_script("echo '{\"takes\":3}'; " + kTake + "a=$id; " + kTake + "b=$id; " + kTake +
               "for id in $a $b $id; do " + kDone + "done; read -r more");
  for (const std::int64_t id : {1, 2, 3, 4}) start(id);
  const std::string process = result_of(1);
  EXPECT_EQ(result_of(2), process);
  EXPECT_EQ(result_of(3), process);
  EXPECT_EQ(max_extra_, 2U);
}

TEST_F(ProcessTasksTest, leaves_its_slot_to_a_task_that_has_waited_for_longer) {
  given_script("echo '{\"takes\":2}'; " + kTake + kBegun + "first=$id; read -r go; id=$first; " +
               kDone + kTake + kDone + "read -r more");
  start(1);
  wait_for_message(1);
  slot_awaited_since_ = loop_->timers().now() - 1ms;
  start(2);
  turn_until([turns = 0]() mutable { return turns++ == 1; });
  stop(1, EndReason::cancelled, 60s);  // the line that the first job waits for
  EXPECT_EQ(end_of(1).kind, ExecutionEnd::Kind::succeeded);
  EXPECT_EQ(end_of(2).kind, ExecutionEnd::Kind::succeeded) << "an idle process takes it";
}

TEST_F(ProcessTasksTest, another_is_started_when_none_is_free) {
  given_script(kTake + kBegun + "read -r more", 2);
  for (const std::int64_t id : {1, 2, 3}) start(id);
  wait_for_message(1);
  wait_for_message(2);
  EXPECT_EQ(processes_->busy(), 2U);
  EXPECT_TRUE(tasks_.at(3)->take_back()) << "there is no third slot";
  tasks_.erase(3);
}

TEST_F(ProcessTasksTest, a_death_fails_only_what_it_ran) {
  given_script(kTake + kBegun + "echo oops >&2; [ $id = 1 ] && kill -9 $$; read -r go; " + kDone,
               2);
  start(1);
  start(2);
  wait_for_message(2);
  EXPECT_EQ(end_of(1).error, "its process was ended by signal 9 (SIGKILL): oops");
  EXPECT_EQ(end_of(1).kind, ExecutionEnd::Kind::signalled);
  stop(2, EndReason::interrupted, 60s);
  EXPECT_EQ(end_of(2).kind, ExecutionEnd::Kind::succeeded) << end_of(2).error;
}

TEST_F(ProcessTasksTest, an_exit_before_the_answer_fails_the_job) {
  given_script(kTake + "echo tired >&2; exit 100");
  start(1);
  EXPECT_EQ(end_of(1).error, "its process exited with code 100 before it answered: tired");
  EXPECT_EQ(end_of(1).kind, ExecutionEnd::Kind::failed) << "100 says nothing about one job";
}

TEST_F(ProcessTasksTest, what_is_left_is_told_with_the_answer_or_before_a_death) {
  given_script("while " + kTake +
               "[ -n \"$line\" ]; do echo \"{\\\"id\\\":$id,\\\"payload\\\":[2]}\"; "
               "[ $id = 2 ] && exit 1; echo \"{\\\"id\\\":$id,\\\"error\\\":\\\"half\\\"}\"; done");
  start(1);
  EXPECT_EQ(end_of(1).payload, "[2]");
  start(2);
  EXPECT_EQ(end_of(2).payload, "[2]");
  EXPECT_EQ(end_of(2).kind, ExecutionEnd::Kind::failed);
}

TEST_F(ProcessTasksTest, what_was_answered_before_the_end_counts) {
  given_script(kTake + kDone + "exit 1");
  start(1);
  EXPECT_EQ(end_of(1).kind, ExecutionEnd::Kind::succeeded);
}

TEST_F(ProcessTasksTest, a_last_line_without_its_end_counts) {
  given_script(kTake + R"(printf '{"id":%s,"result":1}' "$id"; exit 1)");
  start(1);
  EXPECT_EQ(end_of(1).kind, ExecutionEnd::Kind::succeeded);
}

TEST_F(ProcessTasksTest, one_that_cannot_be_started_fails_a_job_and_makes_the_next_wait) {
  given_command({"mail", {"/no/such/program"}});
  start(1);
  start(2);
  EXPECT_EQ(end_of(1).error, "cannot start /no/such/program: No such file or directory");
  EXPECT_EQ(end_of(1).kind, ExecutionEnd::Kind::not_started);
  EXPECT_FALSE(ends_.contains(2)) << "there was no pause";
  end_of(2);
}

TEST_F(ProcessTasksTest, one_that_cannot_be_executed_fails_its_job) {
  given_command({"mail", {path_of("text")}});
  std::ofstream(path_of("text")) << "no program";
  std::filesystem::permissions(path_of("text"), std::filesystem::perms(0755));
  start(1);
  EXPECT_NE(end_of(1).error.find("neither a program for this machine nor a script"),
            std::string::npos);
}

TEST_F(ProcessTasksTest, is_told_in_a_line_what_to_stop_and_may_answer) {
  given_script(kTake + kBegun + "read -r line; " +
               R"(echo "{\"id\":$id,\"result\":$line}"; read -r more)");
  start(1);
  wait_for_message(1);
  stop(1, EndReason::timeout, 60s);
  EXPECT_EQ(result_of(1), R"({"cancel":1,"id_text":"1","reason":"timeout","grace_ms":60000})");
  EXPECT_TRUE(ends_[1].is_answer);
}

TEST_F(ProcessTasksTest, is_ended_when_a_job_does_not_stop_in_time) {
  given_script("echo '{\"takes\":2}'; " + kTake + "a=$id; " + kTake + kBegun +
               "trap '' TERM; while :; do tail -f /dev/null; done");
  start(1);
  start(2);
  wait_for_message(2);
  stop(1, EndReason::cancelled, 20ms);
  EXPECT_EQ(end_of(1).error, "its process was ended: job 1 did not stop in time");
  EXPECT_EQ(end_of(2).error, "its process was ended: job 1 did not stop in time");
}

TEST_F(ProcessTasksTest, a_job_whose_claim_is_over_does_not_go_on) {
  given_script(kTake + kBegun + "read -r line; tail -f /dev/null");
  start(1);
  wait_for_message(1);
  stop(1, EndReason::revoked, 0s);
  EXPECT_EQ(end_of(1).error, "its process was ended: job 1 did not stop in time");
}

TEST_F(ProcessTasksTest, its_neighbours_go_on_if_it_stops_at_once) {
  given_script("echo '{\"takes\":2}'; " + kTake + "a=$id; " + kTake + kBegun + "b=$id; " +
               "read -r line; id=$a; " + kDone + "id=$b; " + kDone + "read -r more");
  start(1);
  start(2);
  wait_for_message(2);
  stop(1, EndReason::revoked, 0s);
  EXPECT_EQ(end_of(2).kind, ExecutionEnd::Kind::succeeded) << end_of(2).error;
}

TEST_F(ProcessTasksTest, what_waits_ends_without_having_begun) {
  given_script(kTake + kBegun + "read -r more");
  start(1);
  start(2);
  wait_for_message(1);
  stop(2, EndReason::cancelled, 60s);
  EXPECT_EQ(end_of(2).reason, "not begun");
}

TEST_F(ProcessTasksTest, stray_output_is_dropped_and_counted) {
  given_script(kTake + "echo hello; printf 'a\\000b\\377\\n\\n'; " +
               R"(echo '{"id":99,"result":1}'; )" + kDone + "read -r more");
  start(1);
  EXPECT_EQ(end_of(1).kind, ExecutionEnd::Kind::succeeded);
  EXPECT_TRUE(
      capture_.has("lines_dropped task=mail reason=\"output that is no line of the "
                   "protocol\" count=1"));
  EXPECT_TRUE(capture_.has("count=2"));
  EXPECT_FALSE(capture_.has("hello")) << "what a task wrote is not for the log";
}

TEST_F(ProcessTasksTest, a_broken_answer_ends_the_process) {
  given_script(kTake + R"(printf '{"id":%s,"result":"\377"}\n' $id; tail -f /dev/null)");
  start(1);
  EXPECT_EQ(end_of(1).error,
            "its process was ended: it wrote a line that is no JSON object as it should be");
}

TEST_F(ProcessTasksTest, a_flood_without_a_line_ends_the_process_within_bounds) {
  given_script(kTake + "exec cat /dev/zero");
  const long before = peak_kilobytes();
  start(1);
  EXPECT_EQ(end_of(1).error, "its process was ended: it wrote a line longer than 1 MB");
  EXPECT_LT(peak_kilobytes() - before, kBoundedKilobytes);
}

TEST_F(ProcessTasksTest, a_flood_of_lines_and_errors_keeps_within_bounds) {
  given_script(kTake + "yes >&2 & yes | head -c 20000000; kill $!; " + kDone + "read -r more");
  const long before = peak_kilobytes();
  start(1);
  EXPECT_EQ(end_of(1).kind, ExecutionEnd::Kind::succeeded);
  EXPECT_LT(peak_kilobytes() - before, kBoundedKilobytes);
}

TEST_F(ProcessTasksTest, one_that_closes_its_output_is_ended) {
  given_script(kTake + "exec >&-; read -r more");
  start(1);
  EXPECT_EQ(end_of(1).error, "its process was ended: it has closed its stdout");
}

TEST_F(ProcessTasksTest, one_that_does_not_read_gets_no_more) {
  given_script("echo '{\"takes\":100}'; tail -f /dev/null");
  start(1);
  turn_until([&] { return max_extra_ > 0; });
  const std::string payload = '"' + std::string(700 * 1024, 'x') + '"';
  for (const std::int64_t id : {2, 3, 4, 5}) start(id, payload);
  stop(1, EndReason::cancelled, 20ms);
  for (const std::int64_t id : {1, 2, 3}) end_of(id);
  EXPECT_TRUE(tasks_.at(5)->take_back()) << "it was written to a process that did not read";
  tasks_.erase(5);
}

TEST_F(ProcessTasksTest, progress_is_merged_and_comes_before_the_end) {
  given_script(kTake + kBegun + R"(echo "{\"id\":$id,\"progress\":0.5}"; )" +
               R"(echo "{\"id\":$id,\"checkpoint\":{\"at\": 7}}"; )" + kDone + "read -r more");
  start(1);
  end_of(1);
  EXPECT_EQ(progress_[1].fraction, 0.5);
  EXPECT_EQ(progress_[1].checkpoint, R"({"at": 7})");
}

TEST_F(ProcessTasksTest, at_a_drain_it_meets_the_end_of_its_input) {
  LifeLine life(path_of("life"));
  given_script("exec 9>" + life.path() + "; echo here >&9; " + kTake + kDone +
               "read -r more || echo bye >&9");
  start(1);
  end_of(1);
  processes_->drain();
  uv_run(loop_->uv(), UV_RUN_ONCE);
  EXPECT_EQ(life.next_line(), "here");
  EXPECT_EQ(life.next_line(), "bye");
  EXPECT_TRUE(life.ends());
}

TEST_F(ProcessTasksTest, nothing_of_it_survives_the_worker) {
  LifeLine life(path_of("life"));
  given_script("exec 9>" + life.path() +
               "; echo here >&9; (setsid sh -c 'trap \"\" TERM; tail "
               "-f /dev/null' &) ; " +
               kTake + kDone + "trap '' TERM; while :; do tail -f /dev/null; done");
  start(1);
  end_of(1);
  processes_.reset();
  loop_.reset();
  EXPECT_EQ(life.next_line(), "here");
  EXPECT_TRUE(life.ends());
}

}  // namespace
}  // namespace pulse
