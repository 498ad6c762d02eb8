// Tasks that are functions of the database, each in a session of its own.
#include "task/function/tasks.hpp"

#include <gtest/gtest.h>

#include "fake_clock.hpp"
#include "fake_connection.hpp"
#include "log_capture.hpp"
#include "server_answers.hpp"

namespace pulse {
namespace {

using namespace std::chrono_literals;

class FunctionTasksTest : public ::testing::Test {
 protected:
  std::unique_ptr<Execution> start(std::int64_t job_id, const std::string& task = "invoice") {
    auto execution = start_now(job_id, task);
    turn();
    return execution;
  }
  std::unique_ptr<Execution> start_now(std::int64_t job_id, const std::string& task = "invoice") {
    HeldJob job;
    job.job.input.job_id = job_id;
    job.job.input.token = 100 + job_id;
    job.job.input.identifier = task;
    job.job.input.worker_name = "host-1";
    ExecutionCallbacks callbacks;
    callbacks.on_end = [this](const ExecutionEnd& end) {
      ends_.push_back(end);
      if (const auto begin = std::exchange(on_end_, nullptr)) begin();
    };
    return std::move(tasks_.start(job, std::move(callbacks)).execution);
  }
  // So many idle sessions, each of a task of its own, one after the other.
  void given_spare_sessions(int count, int backend_pid = FakeConnection::kBackendPid) {
    std::vector<std::unique_ptr<Execution>> running;
    for (int i = 0; i < count; ++i) {
      running.push_back(start(i, "task" + std::to_string(i)));
      sessions_.back()->accept(backend_pid);
      turn();
    }
    for (FakeConnection* session : sessions_) {
      session->answer(done());
      pass_time(1ms);
    }
  }
  // The function runs.
  std::unique_ptr<Execution> given_running(std::int64_t job_id,
                                           const std::string& name = "invoice") {
    auto task = start(job_id, name);
    FakeConnection& session = *sessions_.back();
    if (session.is_opening()) session.accept();
    turn();
    EXPECT_EQ(session.running(), "perform_job");
    return task;
  }
  void turn() { settle(timers_); }
  void pass_time(std::chrono::nanoseconds by) { pass(clock_, timers_, by); }

  FakeClock clock_;
  Timers timers_{clock_};
  LogCapture capture_;
  std::vector<FakeConnection*> sessions_;
  std::vector<ExecutionEnd> ends_;
  std::function<void()> on_end_;  // once, inside the next end
  FunctionTasks tasks_{[this] {
                         auto connection = std::make_unique<FakeConnection>();
                         sessions_.push_back(connection.get());
                         return connection;
                       },
                       5s, timers_, [] { return 0.5; }, capture_.log()};
};

TEST_F(FunctionTasksTest, one_statement_performs_a_job) {
  const auto task = given_running(7);
  EXPECT_EQ(sessions_[0]->param(0), "7");
  EXPECT_EQ(sessions_[0]->param(1), "107");
  sessions_[0]->answer(done());
  ASSERT_EQ(ends_.size(), 1U);
  EXPECT_EQ(ends_[0].kind, ExecutionEnd::Kind::completed);
}

TEST_F(FunctionTasksTest, its_session_is_named_for_the_job_and_its_pid_is_known) {
  const auto waiting = start(8);
  EXPECT_EQ(waiting->pid(), std::nullopt) << "it runs nowhere yet";
  sessions_[0]->accept();
  turn();
  EXPECT_EQ(sessions_[0]->param(2), "pulse-worker job 8, host-1");
  EXPECT_EQ(waiting->pid(), FakeConnection::kBackendPid);
  sessions_[0]->answer(done());
  EXPECT_EQ(waiting->pid(), std::nullopt);
}

TEST_F(FunctionTasksTest, its_session_is_used_again) {
  const auto one = given_running(1);
  sessions_[0]->answer(done());
  const auto task = given_running(2);
  EXPECT_EQ(sessions_.size(), 1U);
  EXPECT_EQ(sessions_[0]->param(0), "2");
}

TEST_F(FunctionTasksTest, a_job_gets_the_session_that_served_its_task) {
  const auto one = given_running(1);
  sessions_[0]->answer(done());
  const auto two = given_running(2, "mail");
  ASSERT_EQ(sessions_.size(), 2U) << "another task has a session of its own";
  sessions_[1]->answer(done());
  const auto three = start(3);
  EXPECT_EQ(sessions_[0]->running(), "perform_job");
  const auto four = start(4, "mail");
  EXPECT_EQ(sessions_[1]->running(), "perform_job");
}

TEST_F(FunctionTasksTest, with_enough_sessions_one_of_another_task_is_renewed) {
  given_spare_sessions(5);
  const auto task = start(10, "mail");
  ASSERT_EQ(sessions_.size(), 5U);
  EXPECT_EQ(sessions_[0]->sent(),
            (std::vector<std::string>{"set_up", "perform_job", "discard", "set_up", "perform_job"}))
      << "the one that was free for longest, in one round trip";
  EXPECT_EQ(sessions_[0]->commit(), Commit::each) << "DISCARD ALL is refused in a transaction";
  sessions_[0]->answer_all({done(), done(), done()});
  ASSERT_EQ(ends_.size(), 6U);
  EXPECT_EQ(ends_[5].kind, ExecutionEnd::Kind::completed);
  const auto next = start(11, "mail");
  EXPECT_EQ(sessions_[0]->sent().size(), 6U) << "another job of the task needs no more";
}

TEST_F(FunctionTasksTest, a_session_behind_a_pooler_is_not_renewed) {
  given_spare_sessions(5, FakeConnection::kBackendPid + 1);
  const auto task = start(10, "mail");
  EXPECT_EQ(sessions_[0]->sent(),
            (std::vector<std::string>{"set_up", "perform_job", "perform_job"}))
      << "what is there may be another client's";
}

TEST_F(FunctionTasksTest, idle_sessions_give_way_to_one_that_is_refused) {
  given_spare_sessions(2);
  const auto task = start(10, "mail");
  sessions_[2]->refuse("too many connections for role \"ann\"");
  EXPECT_FALSE(sessions_[0]->is_open());
  EXPECT_FALSE(sessions_[1]->is_open());
  pass_time(1s);
  sessions_[2]->accept();
  turn();
  EXPECT_EQ(sessions_[2]->running(), "perform_job");
}

TEST_F(FunctionTasksTest, a_session_that_was_opened_anew_has_served_nobody) {
  const auto one = given_running(1);
  sessions_[0]->refuse_statement("22012");
  EXPECT_FALSE(sessions_[0]->is_open()) << "it is not known what the function has left";
  const auto task = start(2, "mail");
  sessions_[0]->accept();
  turn();
  EXPECT_EQ(sessions_[0]->sent(),
            (std::vector<std::string>{"set_up", "perform_job", "set_up", "perform_job"}));
}

TEST_F(FunctionTasksTest, jobs_that_run_at_once_have_a_session_each) {
  const auto one = given_running(1);
  const auto two = given_running(2);
  ASSERT_EQ(sessions_.size(), 2U);
  sessions_[1]->answer(done());
  EXPECT_TRUE(sessions_[0]->is_busy());
  const auto three = given_running(3);
  EXPECT_EQ(sessions_.size(), 2U);
}

TEST_F(FunctionTasksTest, a_session_that_nobody_uses_is_closed) {
  const auto one = given_running(1);
  sessions_[0]->answer(done());
  pass_time(9s);
  EXPECT_TRUE(sessions_[0]->is_open());
  pass_time(2s);
  EXPECT_FALSE(sessions_[0]->is_open());
  const auto task = given_running(2);
  EXPECT_EQ(sessions_.size(), 1U);
}

TEST_F(FunctionTasksTest, an_error_says_what_the_server_said) {
  const auto task = given_running(1);
  sessions_[0]->answer(SqlError{"P0002", "no such customer", "It is 42.", "Add it.", "line 3"});
  ASSERT_EQ(ends_.size(), 1U);
  EXPECT_EQ(ends_[0].kind, ExecutionEnd::Kind::refused);
  EXPECT_EQ(ends_[0].sqlstate, "P0002");
  EXPECT_EQ(ends_[0].error,
            "P0002: no such customer\nDETAIL: It is 42.\nHINT: Add it.\nCONTEXT: line 3");
}

TEST_F(FunctionTasksTest, an_error_is_cut_at_8_kilobytes_of_whole_characters) {
  SqlError error{"22000", std::string(8 * 1024 - 8, 'x') + "\u20ac", "", "", ""};
  EXPECT_EQ(describe_error(error).size(), 8U * 1024 - 1);
}

TEST_F(FunctionTasksTest, after_a_lost_session_nobody_knows) {
  const auto task = given_running(1);
  sessions_[0]->lose("server closed the connection");
  ASSERT_EQ(ends_.size(), 1U);
  EXPECT_EQ(ends_[0].kind, ExecutionEnd::Kind::session_lost);
}

TEST_F(FunctionTasksTest, a_lost_idle_session_is_not_opened_again) {
  const auto one = given_running(1);
  sessions_[0]->answer(done());
  sessions_[0]->lose();
  pass_time(5s);
  EXPECT_FALSE(sessions_[0]->is_opening());
}

TEST_F(FunctionTasksTest, a_job_waits_for_its_session) {
  const auto task = start(1);
  sessions_[0]->refuse("starting up");
  pass_time(1s);
  EXPECT_TRUE(ends_.empty());
  ASSERT_TRUE(sessions_[0]->is_opening());
  sessions_[0]->accept();
  turn();
  EXPECT_EQ(sessions_[0]->running(), "perform_job");
}

TEST_F(FunctionTasksTest, a_job_that_gets_no_session_goes_back) {
  const auto task = start(1);
  for (int i = 0; i < 100 && ends_.empty(); ++i) {
    if (sessions_[0]->is_opening()) sessions_[0]->refuse("too many connections for role \"ann\"");
    pass_time(100ms);
  }
  ASSERT_EQ(ends_.size(), 1U);
  EXPECT_EQ(ends_[0].kind, ExecutionEnd::Kind::not_started);
  EXPECT_TRUE(ends_[0].is_transient);
  EXPECT_EQ(ends_[0].error, "no session for its function: too many connections for role \"ann\"");
  pass_time(10s);
  EXPECT_FALSE(sessions_[0]->is_opening()) << "it is nobody's";
  const auto next = given_running(2);
  EXPECT_EQ(sessions_[0]->param(0), "2");
}

TEST_F(FunctionTasksTest, to_end_it_is_to_cancel_until_there_is_an_answer) {
  const auto task = given_running(1);
  task->terminate(5s);
  EXPECT_EQ(sessions_[0]->cancels(), 1);
  pass_time(60ms);
  EXPECT_EQ(sessions_[0]->cancels(), 2);
  sessions_[0]->refuse_statement("57014");
  ASSERT_EQ(ends_.size(), 1U);
  EXPECT_EQ(ends_[0].sqlstate, "57014");
}

TEST_F(FunctionTasksTest, a_late_cancellation_meets_no_other_job) {
  const auto revoked = given_running(1);
  revoked->terminate(5s);
  sessions_[0]->answer(done());
  EXPECT_FALSE(sessions_[0]->is_open());
  const auto next = given_running(2);
  sessions_.back()->answer(done());
  ASSERT_EQ(ends_.size(), 2U);
  EXPECT_EQ(ends_[1].kind, ExecutionEnd::Kind::completed);
}

TEST_F(FunctionTasksTest, a_function_that_swallows_its_cancellation_loses_its_session) {
  const auto task = given_running(1);
  task->terminate(5s);
  pass_time(4900ms);
  EXPECT_TRUE(ends_.empty());
  pass_time(200ms);
  ASSERT_EQ(ends_.size(), 1U);
  EXPECT_EQ(ends_[0].kind, ExecutionEnd::Kind::session_lost);
  EXPECT_FALSE(sessions_[0]->is_open());
}

TEST_F(FunctionTasksTest, a_revoked_job_may_have_been_completed_and_still_says_so) {
  const auto task = given_running(1);
  task->terminate(0s);
  pass_time(500ms);
  sessions_[0]->answer(done());
  ASSERT_EQ(ends_.size(), 1U);
  EXPECT_EQ(ends_[0].kind, ExecutionEnd::Kind::completed);
}

// As the executor does, which fills a slot as soon as it is free.
TEST_F(FunctionTasksTest, a_job_that_starts_as_a_cancelled_one_is_lost_opens_its_session_once) {
  std::unique_ptr<Execution> next;
  on_end_ = [&] { next = start_now(2); };
  const auto task = given_running(1);
  task->terminate(5s);
  sessions_[0]->lose("gone");
  pass_time(1s);
  ASSERT_EQ(sessions_.size(), 1U);
  EXPECT_EQ(sessions_[0]->opens(), 2);
  sessions_[0]->accept();
  turn();
  EXPECT_EQ(sessions_[0]->running(), "perform_job");
  EXPECT_EQ(sessions_[0]->param(0), "2");
}

TEST_F(FunctionTasksTest, what_was_not_sent_ends_at_once) {
  const auto task = start(1);
  task->terminate(5s);
  turn();
  ASSERT_EQ(ends_.size(), 1U);
  EXPECT_FALSE(sessions_[0]->is_opening());
}

TEST_F(FunctionTasksTest, who_forgets_a_task_closes_its_session) {
  given_running(1).reset();
  EXPECT_FALSE(sessions_[0]->is_open());
  EXPECT_TRUE(ends_.empty());
  const auto task = given_running(2);
  EXPECT_EQ(sessions_.size(), 1U);
}

}  // namespace
}  // namespace pulse
