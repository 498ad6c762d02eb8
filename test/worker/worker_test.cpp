// The order of starting and stopping.
#include "worker_bench.hpp"

namespace pulse {
namespace {

class WorkerTest : public WorkerBench {
 protected:
  WorkerTest() { are_outcomes_apart_ = true; }

  // Registered, attached, and asked for the functions of its database.
  void given_question_for_functions() {
    given_unregistered_worker();
    heartbeat_.accept();
    claim_.accept();
    turn();
    heartbeat_.answer(registered(kWorkerId));
    turn();
    heartbeat_.answer(done());
    turn();
    ASSERT_EQ(heartbeat_.running(), "handler_tasks");
  }

  void answer_farewell() {
    turn();
    ASSERT_EQ(heartbeat_.running(), "deregister_worker");
    EXPECT_EQ(heartbeat_.param(0), std::to_string(kWorkerId));
    heartbeat_.answer(done());
  }
  void lose_all() {
    for (FakeConnection* connection : {&claim_, &finish_, &heartbeat_}) connection->lose();
    turn();
  }
  // As a server does whose pg_hba.conf is being replaced.
  void refuse_all_for(std::chrono::nanoseconds time) {
    for (const TimePoint end = clock_.now() + time; clock_.now() < end; pass_time(500ms)) {
      for (FakeConnection* connection : {&claim_, &finish_, &heartbeat_}) {
        if (connection->is_opening()) connection->refuse("no entry", /*is_permanent=*/true);
      }
    }
  }
};

TEST_F(WorkerTest, a_stop_before_the_answer_to_its_registration_leaves_no_living_worker) {
  given_unregistered_worker();
  heartbeat_.accept();
  turn();
  ASSERT_EQ(heartbeat_.running(), "register_worker");
  worker_->stop();
  turn();
  EXPECT_FALSE(exit_code_);
  heartbeat_.answer(registered(kWorkerId));
  turn();
  ASSERT_EQ(heartbeat_.running(), "deregister_worker");
  EXPECT_EQ(heartbeat_.params(), Params{"7"});
  heartbeat_.answer(done());
  EXPECT_EQ(exit_code_, ExitCode::drained);
}

TEST_F(WorkerTest, a_stop_does_not_wait_for_a_registration_that_is_refused) {
  given_unregistered_worker();
  heartbeat_.accept();
  turn();
  worker_->stop();
  turn();
  heartbeat_.refuse_statement("57014");
  EXPECT_EQ(exit_code_, ExitCode::drained);
}

TEST_F(WorkerTest, nothing_is_claimed_before_it_is_registered) {
  given_unregistered_worker();
  claim_.accept();
  pass_time(100ms);
  EXPECT_EQ(claim_.sent(), std::vector<std::string>{"set_up"});
  EXPECT_EQ(finish_.opens(), 0);
}

TEST_F(WorkerTest, what_serves_no_task_at_all_says_so_and_ends) {
  served_ = {};
  given_question_for_functions();
  heartbeat_.answer(handler_tasks());
  answer_farewell();
  EXPECT_EQ(exit_code_, ExitCode::configuration);
  EXPECT_EQ(claim_.sent(), std::vector<std::string>{"set_up"});
  EXPECT_TRUE(capture_.has("refused reason=\"it serves no task: no executable"));
}

TEST_F(WorkerTest, functions_alone_are_enough_to_serve) {
  served_ = {};
  given_question_for_functions();
  heartbeat_.answer(handler_tasks(R"(["invoice"])"));
  turn();
  EXPECT_EQ(claim_.running(), "claim");
  EXPECT_TRUE(capture_.has("info functions count=1 names=invoice"));
}

TEST_F(WorkerTest, what_loses_its_last_task_later_says_so_and_goes_on) {
  given_worker();
  worker_->serve({});
  turn();
  heartbeat_.answer(handler_tasks());
  turn();
  EXPECT_FALSE(exit_code_);
  EXPECT_TRUE(capture_.has("warning serves_nothing"));
}

TEST_F(WorkerTest, a_superuser_is_warned_once_and_told_what_to_do) {
  heartbeat_.be_superuser();
  given_worker();
  const std::string text = capture_.text();
  const std::size_t line = text.find("superuser role=ann");
  ASSERT_NE(line, std::string::npos);
  EXPECT_EQ(text.find("superuser role=ann", line + 1), std::string::npos);
  EXPECT_TRUE(capture_.has("pulse.grant_worker("));
}

TEST_F(WorkerTest, another_role_is_not_warned) {
  given_worker();
  EXPECT_FALSE(capture_.has("superuser"));
}

TEST_F(WorkerTest, idle_it_stops_by_cancelling_the_wait_and_saying_good_bye) {
  given_worker();
  claim_.answer(nothing());
  turn();
  ASSERT_EQ(claim_.running(), "wait_for_job");
  worker_->stop();
  EXPECT_EQ(claim_.cancels(), 1);
  claim_.refuse_statement("57014", "canceling statement due to user request");
  answer_farewell();
  EXPECT_EQ(exit_code_, ExitCode::drained);
  EXPECT_FALSE(claim_.is_open());
  EXPECT_FALSE(finish_.is_open());
  EXPECT_FALSE(heartbeat_.is_open());
}

TEST_F(WorkerTest, a_cancel_that_came_too_early_is_repeated) {
  given_worker();
  claim_.answer(nothing());
  turn();
  worker_->stop();
  pass_time(49ms);
  EXPECT_EQ(claim_.cancels(), 1);
  pass_time(1ms);
  EXPECT_EQ(claim_.cancels(), 2);
}

TEST_F(WorkerTest, a_draining_worker_finishes_what_runs_and_releases_the_rest) {
  given_worker(1);
  claim_.answer(claimed({{.id = 1}, {.id = 2, .token = 200}}));
  turn();
  worker_->stop();
  turn();
  ASSERT_EQ(finish_.running(), "release");
  EXPECT_EQ(finish_.params(), (Params{"{2}", "{200}"}));
  finish_.answer(outcomes({{2, "accepted"}}));
  turn();
  EXPECT_FALSE(was_terminated(1));
  pass_time(5s);
  ASSERT_EQ(heartbeat_.running(), "heartbeat") << "it beats until the last job ends";
  EXPECT_EQ(heartbeat_.param(1), "{1}");
  heartbeat_.answer(beat());
  end_task(1);
  ASSERT_EQ(finish_.running(), "complete_many");
  EXPECT_EQ(heartbeat_.running(), "") << "not before the outcome has its answer";
  finish_.answer(outcomes({{1, "accepted"}}));
  answer_farewell();
  EXPECT_EQ(exit_code_, ExitCode::drained);
}

TEST_F(WorkerTest, a_claim_that_is_under_way_when_it_drains_is_awaited_and_released) {
  given_worker();
  worker_->stop();
  turn();
  EXPECT_EQ(heartbeat_.running(), "");
  claim_.answer(claimed({{.id = 1}}));
  turn();
  EXPECT_TRUE(started_.empty());
  ASSERT_EQ(finish_.running(), "release");
  finish_.answer(outcomes({{1, "accepted"}}));
  answer_farewell();
  EXPECT_EQ(exit_code_, ExitCode::drained);
}

TEST_F(WorkerTest, when_the_grace_is_over_tasks_are_ended_and_the_server_is_told) {
  given_worker();
  given_running({{.id = 1}});
  worker_->stop();
  pass_beating(25s - 1ns);
  EXPECT_FALSE(was_terminated(1));
  pass_beating(1ns);
  ASSERT_TRUE(was_terminated(1));
  EXPECT_EQ(tasks_.at(1)->terminations[0], 2s);
  end_task(1, killed());
  EXPECT_NE(finish_.running(), "fail_many") << "deregistering says that it was interrupted";
  answer_farewell();
  EXPECT_EQ(exit_code_, ExitCode::forced);
}

TEST_F(WorkerTest, a_second_signal_does_that_at_once) {
  given_worker();
  given_running({{.id = 1}});
  worker_->stop();
  worker_->stop();
  EXPECT_TRUE(was_terminated(1));
  end_task(1, killed());
  answer_farewell();
  EXPECT_EQ(exit_code_, ExitCode::forced);
  EXPECT_TRUE(capture_.has("interrupted=1 ")) << capture_.text();
}

TEST_F(WorkerTest, a_terminal_that_is_closed_drains_and_never_forces) {
  given_worker();
  given_running({{.id = 1}});
  worker_->take_signal();
  pass_beating(5s);
  worker_->drain_within_grace("its terminal was closed");
  EXPECT_FALSE(was_terminated(1));
  end_task(1);
  finish_.answer(outcomes({{1, "accepted"}}));
  answer_farewell();
  EXPECT_EQ(exit_code_, ExitCode::drained);
}

TEST_F(WorkerTest, signals_within_five_seconds_are_one_wish) {
  given_worker();
  given_running({{.id = 1}});
  worker_->take_signal();
  worker_->take_signal();
  pass_beating(5s - 1ns);
  worker_->take_signal();
  EXPECT_FALSE(was_terminated(1));
  pass_beating(1ns);
  worker_->take_signal();
  EXPECT_TRUE(was_terminated(1));
  end_task(1, killed());
  answer_farewell();
  EXPECT_EQ(exit_code_, ExitCode::forced);
  EXPECT_TRUE(capture_.has("next_counts_in_ms=5000"));
}

TEST_F(WorkerTest, forced_it_still_reports_what_had_ended) {
  given_worker(2);
  given_running({{.id = 1}, {.id = 2}});
  end_task(1);
  worker_->stop();
  worker_->stop();
  end_task(2, killed());
  claim_.answer(nothing());  // it was sent when the first task ended
  turn();
  EXPECT_EQ(heartbeat_.running(), "");
  finish_.answer(outcomes({{1, "accepted"}}));
  answer_farewell();
  EXPECT_EQ(exit_code_, ExitCode::forced);
}

TEST_F(WorkerTest, forced_it_ends_even_if_nobody_answers) {
  given_worker(2);
  given_running({{.id = 1}, {.id = 2}});
  end_task(1);
  worker_->stop();
  worker_->stop();
  pass_time(5s);
  EXPECT_EQ(exit_code_, ExitCode::forced);
  EXPECT_TRUE(capture_.has("unreported=1"));
}

TEST_F(WorkerTest, without_a_connection_there_is_nobody_to_say_good_bye_to) {
  given_worker();
  claim_.answer(nothing());
  turn();
  heartbeat_.lose();
  claim_.lose();
  worker_->stop();
  turn();
  EXPECT_EQ(exit_code_, ExitCode::drained);
}

TEST_F(WorkerTest, an_outcome_that_cannot_be_delivered_makes_the_end_forced) {
  given_worker();
  given_running({{.id = 1}});
  finish_.lose();
  heartbeat_.lose();
  end_task(1);
  worker_->stop();
  pass_time(25s + 5s);
  EXPECT_EQ(exit_code_, ExitCode::forced);
  EXPECT_TRUE(capture_.has("unreported=1"));
}

TEST_F(WorkerTest, a_drain_without_a_limit_ends_where_the_database_is_gone_for_good) {
  given_worker();
  given_running({{.id = 1}});
  pass_time(5s);
  heartbeat_.answer(beat("draining"));
  end_task(1);
  lose_all();
  refuse_all_for(70s + 25s + 5s);
  EXPECT_EQ(exit_code_, ExitCode::forced);
  EXPECT_TRUE(capture_.has("unreported=1"));
}

TEST_F(WorkerTest, a_database_that_refuses_us_at_the_start_ends_it) {
  given_unregistered_worker();
  heartbeat_.refuse("database \"x\" does not exist", /*is_permanent=*/true);
  turn();
  EXPECT_EQ(exit_code_, ExitCode::database_gone);
  EXPECT_TRUE(capture_.has("(PGHOST, PGDATABASE, "));
}

TEST_F(WorkerTest, a_server_that_is_merely_down_is_awaited) {
  given_unregistered_worker();
  for (int i = 0; i < 100; ++i) {
    if (heartbeat_.is_opening()) heartbeat_.refuse("connection refused");
    if (claim_.is_opening()) claim_.refuse("connection refused");
    if (finish_.is_opening()) finish_.refuse("connection refused");
    pass_time(5s);
  }
  EXPECT_FALSE(exit_code_);
  EXPECT_TRUE(heartbeat_.is_opening());
}

TEST_F(WorkerTest, a_refusal_that_is_over_within_a_minute_ends_nothing) {
  given_worker();
  given_running({{.id = 1}});
  lose_all();
  refuse_all_for(59s);
  EXPECT_FALSE(capture_.has("error refused")) << capture_.text();
}

TEST_F(WorkerTest, refused_for_a_minute_it_lets_tasks_finish_and_then_ends) {
  given_worker();
  given_running({{.id = 1}});
  lose_all();
  refuse_all_for(70s);
  EXPECT_FALSE(exit_code_);
  EXPECT_FALSE(was_terminated(1)) << "its task may finish";
  end_task(1);
  heartbeat_.accept();
  finish_.accept();
  turn();
  ASSERT_EQ(heartbeat_.running(), "attach_worker");
  heartbeat_.answer(done());
  turn();
  answer_beat();
  ASSERT_EQ(finish_.running(), "complete_many") << "the refusal ended in time";
  finish_.answer(outcomes({{1, "accepted"}}));
  answer_farewell();
  EXPECT_EQ(exit_code_, ExitCode::database_gone);
}

TEST_F(WorkerTest, one_connection_that_is_refused_ends_nothing_while_another_is_not) {
  given_worker();
  given_running({{.id = 1}});
  finish_.lose();
  turn();
  for (int i = 0; i < 100; ++i) {
    if (finish_.is_opening()) finish_.refuse("too many of this role", /*is_permanent=*/true);
    pass_beating(1s);
  }
  while (!finish_.is_opening()) pass_beating(1s);
  finish_.accept(finish_pid());
  end_task(1);
  finish_.answer(outcomes({{1, "accepted"}}));
  turn();
  EXPECT_FALSE(exit_code_);
  EXPECT_FALSE(capture_.has("draining")) << capture_.text();
}

TEST_F(WorkerTest, jobs_of_a_lost_worker_that_had_ended_are_still_reported) {
  given_worker(2);
  given_running({{.id = 1}, {.id = 2}});
  pass_time(5s);
  const auto on_end = tasks_.at(1)->callbacks.on_end;
  finish_.lose();
  on_end(success());
  heartbeat_.answer(beat("lost", "{1,2}"));
  turn();
  heartbeat_.answer(registered(8));
  turn();
  finish_.accept();
  turn();
  ASSERT_EQ(finish_.running(), "complete_many") << "its token decides";
  EXPECT_EQ(finish_.params(), (Params{"{1}", "{100}", std::nullopt}));
  EXPECT_TRUE(was_terminated(2));
}

}  // namespace
}  // namespace pulse
