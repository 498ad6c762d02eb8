// What this worker says about itself, and what it does about what it hears.
#include "worker_bench.hpp"

namespace pulse {
namespace {

class HeartbeatTest : public WorkerBench {
 protected:
  HeartbeatTest() { are_outcomes_apart_ = true; }
};

TEST_F(HeartbeatTest, it_registers_once_and_attaches) {
  given_worker();
  EXPECT_EQ(heartbeat_.sent(), (std::vector<std::string>{"set_up", "register_worker",
                                                         "attach_worker", "handler_tasks"}));
}

TEST_F(HeartbeatTest, registration_names_the_tasks_and_who_runs) {
  given_unregistered_worker();
  heartbeat_.accept();
  turn();
  EXPECT_EQ(heartbeat_.params(), (Params{"bench", R"({"mail","report"})", "{}", std::nullopt}));
}

TEST_F(HeartbeatTest, beats_come_on_the_interval_of_the_registration) {
  given_worker();
  pass_time(5s - 1ns);
  EXPECT_EQ(heartbeat_.running(), "");
  pass_time(1ns);
  EXPECT_EQ(heartbeat_.running(), "heartbeat");
  heartbeat_.answer(beat());
  pass_time(5s - 1ns);
  EXPECT_EQ(heartbeat_.running(), "");
  pass_time(1ns);
  EXPECT_EQ(heartbeat_.running(), "heartbeat");
}

TEST_F(HeartbeatTest, a_beat_names_exactly_the_jobs_held) {
  given_worker(/*concurrency=*/2);
  given_running({{.id = 3}, {.id = 1}});
  end_task(3);  // its completion is on the way
  claim_.answer(nothing());
  pass_time(5s);
  EXPECT_EQ(heartbeat_.params(), (Params{"7", "{1,3}"}));
  heartbeat_.answer(beat());
  finish_.answer(outcomes({{3, "accepted"}}));
  pass_time(5s);
  EXPECT_EQ(heartbeat_.params(), (Params{"7", "{1}"}));
}

TEST_F(HeartbeatTest, holding_nothing_is_said_too) {
  given_worker();
  claim_.answer(nothing());
  pass_time(5s);
  EXPECT_EQ(heartbeat_.params(), (Params{"7", "{}"}));
}

TEST_F(HeartbeatTest, an_early_beat_says_nothing_about_jobs_while_a_claim_is_under_way) {
  given_worker();
  heartbeat_.lose();
  turn();
  heartbeat_.accept();
  turn();
  heartbeat_.answer(done());
  turn();
  EXPECT_EQ(heartbeat_.running(), "heartbeat");
  EXPECT_EQ(heartbeat_.params(), (Params{"7", std::nullopt}));
}

TEST_F(HeartbeatTest, a_revoked_job_is_killed_and_not_reported) {
  given_worker(2);
  given_running({{.id = 1}, {.id = 2}});
  pass_time(5s);
  heartbeat_.answer(beat("alive", "{1}"));
  turn();
  ASSERT_TRUE(was_terminated(1));
  EXPECT_EQ(tasks_.at(1)->terminations[0], 0s);
  EXPECT_FALSE(was_terminated(2));
  end_task(1, killed());
  EXPECT_EQ(finish_.running(), "");
  answer_beat();
  pass_time(5s);
  EXPECT_EQ(heartbeat_.params(), (Params{"7", "{2}"}));
}

TEST_F(HeartbeatTest, revoking_means_the_claim_that_was_named_and_no_newer_one) {
  given_worker(2);
  given_running({{.id = 1, .token = 100}});
  pass_time(5s);
  ASSERT_EQ(heartbeat_.running(), "heartbeat");
  // While the beat is under way the server gives the same job to us again.
  ASSERT_EQ(claim_.running(), "claim");
  claim_.answer(claimed({{.id = 1, .token = 200}}));
  turn();
  end_task(1, killed());
  heartbeat_.answer(beat("alive", "{1}"));
  turn();
  EXPECT_EQ(started_, (std::vector<std::int64_t>{1, 1}));
  EXPECT_FALSE(was_terminated(1)) << "the newer claim was killed";
}

TEST_F(HeartbeatTest, a_cancelled_job_is_terminated_and_fails_for_good) {
  given_worker();
  given_running({{.id = 1}});
  pass_time(5s);
  heartbeat_.answer(beat("alive", "{}", "{1}"));
  turn();
  ASSERT_TRUE(was_terminated(1));
  EXPECT_GT(tasks_.at(1)->terminations[0], 0s);
  end_task(1, killed());
  ASSERT_EQ(finish_.running(), "fail_many");
  EXPECT_EQ(finish_.params(), (Params{"{1}", "{100}", R"({"cancelled
killed by signal 9"})",
                                      "{f}", std::nullopt, std::nullopt}));
}

TEST_F(HeartbeatTest, a_lost_worker_kills_its_tasks_and_goes_on_under_a_new_id) {
  given_worker();
  given_running({{.id = 1}});
  pass_time(5s);
  heartbeat_.answer(beat("lost", "{1}"));
  turn();
  ASSERT_TRUE(was_terminated(1));
  ASSERT_EQ(heartbeat_.running(), "register_worker");
  heartbeat_.answer(registered(8));
  turn();
  ASSERT_EQ(heartbeat_.running(), "attach_worker");
  EXPECT_EQ(heartbeat_.param(0), "8");
  heartbeat_.answer(done());
  turn();
  heartbeat_.answer(handler_tasks());
  end_task(1, killed());
  EXPECT_EQ(finish_.running(), "");
  ASSERT_EQ(claim_.running(), "claim");
  EXPECT_EQ(claim_.param(0), "8");
  EXPECT_TRUE(capture_.has("lost worker=7"));
}

TEST_F(HeartbeatTest, a_claim_that_is_refused_for_the_worker_means_the_same) {
  given_worker();
  claim_.refuse_statement("PU002");
  turn();
  ASSERT_EQ(heartbeat_.running(), "heartbeat");
  EXPECT_EQ(heartbeat_.params(), (Params{"7", std::nullopt}));  // it lives
  heartbeat_.answer(beat("lost"));
  turn();
  EXPECT_EQ(heartbeat_.running(), "register_worker");
}

TEST_F(HeartbeatTest, one_that_is_too_late_to_attach_says_that_it_lives) {
  given_worker();
  claim_.answer(nothing());
  heartbeat_.lose();
  turn();
  heartbeat_.accept();
  turn();
  ASSERT_EQ(heartbeat_.running(), "attach_worker");
  heartbeat_.refuse_statement("PU002");
  turn();
  ASSERT_EQ(heartbeat_.running(), "heartbeat");
  heartbeat_.lose();
  turn();
  pass_time(1s);
  heartbeat_.accept();
  turn();
  ASSERT_EQ(heartbeat_.running(), "heartbeat");
  EXPECT_EQ(heartbeat_.params(), (Params{"7", std::nullopt}));
  heartbeat_.answer(beat("lost"));
  turn();
  EXPECT_EQ(heartbeat_.running(), "register_worker");
}

TEST_F(HeartbeatTest, once_it_is_connected_again_the_others_wait_no_longer) {
  given_worker();
  random_ = 0.999;
  for (FakeConnection* connection : {&claim_, &heartbeat_}) connection->lose();
  turn();
  for (int i = 0; i < 20; ++i) {
    for (FakeConnection* connection : {&claim_, &heartbeat_}) {
      if (connection->is_opening()) connection->refuse("away");
    }
    pass_time(1s);
  }
  const int opens = claim_.opens();
  for (int i = 0; i < 3 && !heartbeat_.is_opening(); ++i) pass_time(1s);
  ASSERT_TRUE(heartbeat_.is_opening()) << "within two seconds";
  heartbeat_.accept();
  turn();
  EXPECT_TRUE(claim_.is_opening()) << opens;
}

TEST_F(HeartbeatTest, after_a_reconnect_it_attaches_before_it_beats) {
  given_worker();
  claim_.answer(nothing());
  heartbeat_.lose();
  turn();
  heartbeat_.accept();
  turn();
  ASSERT_EQ(heartbeat_.running(), "attach_worker");
  heartbeat_.answer(done());
  turn();
  ASSERT_EQ(heartbeat_.running(), "heartbeat");
  EXPECT_EQ(heartbeat_.param(0), "7");
}

TEST_F(HeartbeatTest, behind_a_pooler_it_does_not_attach) {
  given_unregistered_worker();
  heartbeat_.accept(FakeConnection::kBackendPid + 1);
  turn();
  heartbeat_.answer(registered(7));
  turn();
  ASSERT_EQ(heartbeat_.running(), "handler_tasks");
  heartbeat_.answer(handler_tasks());
  turn();
  EXPECT_EQ(heartbeat_.running(), "");
  pass_time(5s);
  EXPECT_EQ(heartbeat_.running(), "heartbeat");
}

TEST_F(HeartbeatTest, a_beat_without_an_answer_closes_its_connection) {
  given_worker();
  pass_time(5s);
  ASSERT_EQ(heartbeat_.running(), "heartbeat");
  pass_time(5s);
  EXPECT_EQ(heartbeat_.closes(), 1);
  EXPECT_TRUE(heartbeat_.is_opening());
  EXPECT_TRUE(capture_.has("heartbeat_failed statement=heartbeat"));
}

TEST_F(HeartbeatTest, it_doubts_an_unanswered_beat_while_another_can_still_be_in_time) {
  given_unregistered_worker();
  heartbeat_.accept();
  turn();
  heartbeat_.answer(registered(7, "5.000000", "12.500000"));  // fresh for 6.25 s
  turn();
  heartbeat_.answer(done());
  turn();
  heartbeat_.answer(handler_tasks());
  pass_time(5s);
  ASSERT_EQ(heartbeat_.running(), "heartbeat");
  pass_time(3100ms);
  EXPECT_EQ(heartbeat_.closes(), 0);
  pass_time(100ms);
  EXPECT_EQ(heartbeat_.closes(), 1);
}

TEST_F(HeartbeatTest, it_claims_once_its_end_would_be_found_at_once) {
  given_unregistered_worker();
  heartbeat_.accept();
  claim_.accept();
  turn();
  heartbeat_.answer(registered(7));
  turn();
  ASSERT_EQ(heartbeat_.running(), "attach_worker");
  heartbeat_.answer(done());
  turn();
  EXPECT_EQ(claim_.running(), "");
  heartbeat_.answer(handler_tasks());
  turn();
  EXPECT_EQ(claim_.running(), "claim");
}

TEST_F(HeartbeatTest, it_claims_although_it_may_not_attach) {
  given_unregistered_worker();
  heartbeat_.accept();
  claim_.accept();
  turn();
  heartbeat_.answer(registered(7));
  turn();
  heartbeat_.refuse_statement("53200");
  turn();
  heartbeat_.answer(handler_tasks());
  turn();
  EXPECT_EQ(claim_.running(), "claim");
}

TEST_F(HeartbeatTest, tasks_with_a_handler_are_served_beside_those_of_the_folder) {
  given_unregistered_worker();
  heartbeat_.accept();
  claim_.accept();
  turn();
  heartbeat_.answer(registered(7));
  turn();
  heartbeat_.answer(done());
  turn();
  heartbeat_.answer(handler_tasks(R"(["invoice","mail"])"));
  turn();
  ASSERT_EQ(claim_.running(), "claim");
  EXPECT_EQ(claim_.param(2), R"({"invoice","mail","report"})");
}

TEST_F(HeartbeatTest, a_new_handler_is_served_as_soon_as_the_server_tells) {
  given_worker();
  claim_.answer(nothing());
  turn();
  ASSERT_EQ(claim_.running(), "wait_for_job");
  heartbeat_.notice("PU102");
  turn();
  ASSERT_EQ(heartbeat_.running(), "handler_tasks");
  heartbeat_.answer(handler_tasks(R"(["invoice"])"));
  turn();
  EXPECT_EQ(claim_.cancels(), 1);
  claim_.refuse_statement("57014");
  turn();
  ASSERT_EQ(claim_.running(), "claim");
  EXPECT_EQ(claim_.param(2), R"({"invoice","mail","report"})");
}

TEST_F(HeartbeatTest, an_older_extension_has_no_handlers) {
  given_unregistered_worker();
  heartbeat_.accept();
  claim_.accept();
  turn();
  heartbeat_.answer(registered(7));
  turn();
  heartbeat_.answer(done());
  turn();
  heartbeat_.refuse_statement("42883");
  turn();
  EXPECT_EQ(claim_.running(), "claim");
}

TEST_F(HeartbeatTest, a_refused_beat_is_said_and_repeated) {
  given_worker();
  pass_time(5s);
  heartbeat_.refuse_statement("57014");
  pass_time(5s);
  EXPECT_EQ(heartbeat_.running(), "heartbeat");
}

TEST_F(HeartbeatTest, settings_that_contradict_each_other_end_the_process) {
  given_unregistered_worker();
  heartbeat_.accept();
  turn();
  heartbeat_.refuse_statement("PU003", "it is too short", "It is 1 s.", "make it longer");
  turn();
  EXPECT_EQ(exit_code_, ExitCode::configuration);
  EXPECT_TRUE(capture_.has("it is too short (It is 1 s): make it longer"));
}

TEST_F(HeartbeatTest, a_database_without_the_extension_ends_the_process) {
  given_unregistered_worker();
  heartbeat_.accept();
  turn();
  heartbeat_.refuse_statement("3F000", "schema \"pulse\" does not exist");
  turn();
  EXPECT_EQ(exit_code_, ExitCode::database_gone);
  EXPECT_TRUE(capture_.has("database shop has no pg_pulse")) << capture_.text();
  EXPECT_TRUE(capture_.has("CREATE EXTENSION pg_pulse"));
  EXPECT_FALSE(capture_.has("warning heartbeat_failed")) << "one line says it";
}

TEST_F(HeartbeatTest, a_schema_that_a_drop_left_behind_is_no_extension) {
  given_unregistered_worker();
  heartbeat_.accept();
  turn();
  heartbeat_.refuse_statement("42883", "function pulse.register_worker does not exist");
  turn();
  EXPECT_EQ(exit_code_, ExitCode::database_gone);
  EXPECT_TRUE(capture_.has("database shop has no pg_pulse"));
}

TEST_F(HeartbeatTest, a_role_without_rights_is_told_which_grant_it_needs) {
  given_unregistered_worker();
  heartbeat_.accept();
  turn();
  heartbeat_.refuse_statement("42501", "permission denied for schema pulse");
  turn();
  EXPECT_EQ(exit_code_, ExitCode::configuration);
  EXPECT_TRUE(capture_.has("role ann may not run jobs")) << capture_.text();
  EXPECT_TRUE(capture_.has("SELECT pulse.grant_worker('ann')"));
}

TEST_F(HeartbeatTest, a_registration_that_fails_for_now_is_repeated_after_a_pause) {
  given_unregistered_worker();
  heartbeat_.accept();
  turn();
  heartbeat_.refuse_statement("53200", "out of memory");
  turn();
  EXPECT_EQ(heartbeat_.running(), "");
  pass_time(1s);
  EXPECT_EQ(heartbeat_.running(), "register_worker");
  EXPECT_FALSE(exit_code_);
}

TEST_F(HeartbeatTest, an_order_to_drain_is_followed) {
  given_worker();
  given_running({{.id = 1}});
  pass_time(5s);
  heartbeat_.answer(beat("draining"));
  turn();
  end_task(1);
  finish_.answer(outcomes({{1, "accepted"}}));
  turn();
  EXPECT_EQ(heartbeat_.running(), "deregister_worker");
  EXPECT_EQ(claim_.running(), "");
}

}  // namespace
}  // namespace pulse
