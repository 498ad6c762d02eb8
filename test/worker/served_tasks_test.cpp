// What this worker tells when the tasks that it serves, or its slots, have changed since it
// registered.
#include "worker_bench.hpp"

namespace pulse {
namespace {

class ServedTasksTest : public WorkerBench {
 protected:
  // After the first answer of the server, with a list of tasks that is told.
  void given_change() {
    given_worker();
    worker_->serve({"mail", "new"});
    turn();
    ASSERT_EQ(heartbeat_.running(), "handler_tasks");
    heartbeat_.answer(handler_tasks());
    turn();
    ASSERT_EQ(heartbeat_.running(), "serve_tasks");
  }
  void given_told_change() {
    given_change();
    heartbeat_.answer(done());
    turn();
    ASSERT_EQ(heartbeat_.running(), "");
  }
  // The session is back, and has attached and sent a beat.
  void reconnect() {
    if (!heartbeat_.is_opening()) heartbeat_.lose();
    pass_time(1s);
    heartbeat_.accept();
    turn();
    ASSERT_EQ(heartbeat_.running(), "attach_worker");
    heartbeat_.answer(done());
    turn();
    ASSERT_EQ(heartbeat_.running(), "heartbeat");
    heartbeat_.answer(beat());
    turn();
  }
};

TEST_F(ServedTasksTest, a_changed_list_is_told_once) {
  given_change();
  EXPECT_EQ(heartbeat_.params(), (Params{"7", R"({"mail","new"})", "{}"}));
  heartbeat_.answer(done());
  pass_time(5s);
  ASSERT_EQ(heartbeat_.running(), "heartbeat");
  heartbeat_.answer(beat());
  turn();
  EXPECT_EQ(heartbeat_.running(), "");
}

TEST_F(ServedTasksTest, the_list_that_the_registration_named_is_not_told_again) {
  given_worker();
  worker_->serve(served_);
  turn();
  ASSERT_EQ(heartbeat_.running(), "handler_tasks");
  heartbeat_.answer(handler_tasks());
  turn();
  EXPECT_EQ(heartbeat_.running(), "");
}

TEST_F(ServedTasksTest, functions_of_the_database_are_told_once_they_are_known) {
  given_unregistered_worker();
  heartbeat_.accept();
  turn();
  heartbeat_.answer(registered(7));
  turn();
  heartbeat_.answer(done());
  turn();
  heartbeat_.answer(handler_tasks(R"(["invoice"])"));
  turn();
  ASSERT_EQ(heartbeat_.running(), "serve_tasks");
  EXPECT_EQ(heartbeat_.param(1), R"({"invoice","mail","report"})");
}

TEST_F(ServedTasksTest, a_list_that_changes_before_the_registration_is_answered_is_told) {
  given_unregistered_worker();
  heartbeat_.accept();
  turn();
  ASSERT_EQ(heartbeat_.running(), "register_worker");
  worker_->serve({"late"});
  heartbeat_.answer(registered(7));
  turn();
  heartbeat_.answer(done());
  turn();
  heartbeat_.answer(handler_tasks());
  turn();
  ASSERT_EQ(heartbeat_.running(), "serve_tasks");
  EXPECT_EQ(heartbeat_.param(1), R"({"late"})");
}

TEST_F(ServedTasksTest, a_beat_that_is_due_comes_first) {
  given_change();
  worker_->serve({"mail"});
  pass_time(5s - 1ns);
  heartbeat_.answer(done());
  pass_time(1ns);
  ASSERT_EQ(heartbeat_.running(), "handler_tasks");
  heartbeat_.answer(handler_tasks());
  turn();
  ASSERT_EQ(heartbeat_.running(), "heartbeat");
  heartbeat_.answer(beat());
  turn();
  ASSERT_EQ(heartbeat_.running(), "serve_tasks");
  EXPECT_EQ(heartbeat_.param(1), R"({"mail"})");
}

TEST_F(ServedTasksTest, after_a_reconnect_a_list_that_was_told_is_told_again) {
  given_told_change();
  reconnect();
  ASSERT_EQ(heartbeat_.running(), "serve_tasks");
  EXPECT_EQ(heartbeat_.param(1), R"({"mail","new"})");
}

TEST_F(ServedTasksTest, after_a_reconnect_the_list_of_the_registration_is_not_told) {
  given_worker();
  reconnect();
  EXPECT_EQ(heartbeat_.running(), "");
}

TEST_F(ServedTasksTest, a_lost_answer_is_asked_for_again) {
  given_change();
  heartbeat_.lose();
  reconnect();
  EXPECT_EQ(heartbeat_.running(), "serve_tasks");
}

TEST_F(ServedTasksTest, a_new_registration_names_the_list_and_tells_it_no_second_time) {
  given_told_change();
  pass_time(5s);
  heartbeat_.answer(beat("lost"));
  turn();
  ASSERT_EQ(heartbeat_.running(), "register_worker");
  EXPECT_EQ(heartbeat_.param(1), R"({"mail","new"})");
  heartbeat_.answer(registered(8));
  turn();
  heartbeat_.answer(done());
  turn();
  heartbeat_.answer(handler_tasks());
  turn();
  EXPECT_EQ(heartbeat_.running(), "");
  reconnect();
  EXPECT_EQ(heartbeat_.running(), "") << "not after a reconnect either";
}

TEST_F(ServedTasksTest, one_that_is_lost_when_it_tells_registers_anew) {
  given_change();
  heartbeat_.refuse_statement("PU002", "worker 7 is lost");
  turn();
  ASSERT_EQ(heartbeat_.running(), "heartbeat");
  heartbeat_.answer(beat("lost"));
  turn();
  EXPECT_EQ(heartbeat_.running(), "register_worker");
}

TEST_F(ServedTasksTest, an_older_extension_is_asked_once_and_without_a_word) {
  given_change();
  heartbeat_.refuse_statement("42883", "function pulse.serve_tasks does not exist");
  pass_time(5s);
  heartbeat_.answer(beat());
  turn();
  EXPECT_EQ(heartbeat_.running(), "");
  EXPECT_FALSE(capture_.has("heartbeat_failed"));
}

TEST_F(ServedTasksTest, a_right_that_is_missing_is_told_of_once) {
  given_change();
  heartbeat_.refuse_statement("42501", "permission denied for function serve_tasks");
  turn();
  EXPECT_EQ(heartbeat_.running(), "");
  EXPECT_TRUE(capture_.has("heartbeat_failed statement=serve_tasks"));
  pass_time(5s);
  heartbeat_.answer(beat());
  turn();
  EXPECT_EQ(heartbeat_.running(), "");
}

TEST_F(ServedTasksTest, behind_a_lock_it_tries_again_after_the_next_beat) {
  given_change();
  heartbeat_.refuse_statement("55P03", "canceling statement due to lock timeout");
  turn();
  EXPECT_EQ(heartbeat_.running(), "");
  pass_time(5s);
  ASSERT_EQ(heartbeat_.running(), "heartbeat");
  heartbeat_.answer(beat());
  turn();
  EXPECT_EQ(heartbeat_.running(), "serve_tasks");
}

TEST_F(ServedTasksTest, slots_that_change_are_told_within_a_beat) {
  std::size_t slots = 1;
  given_worker();
  worker_->info = [&slots](std::size_t, bool) {
    return R"({"slots":)" + std::to_string(slots) + "}";
  };
  worker_->serve(served_);
  turn();
  heartbeat_.answer(handler_tasks());
  turn();
  ASSERT_EQ(heartbeat_.running(), "serve_tasks");
  heartbeat_.answer(done());
  slots = 4;
  pass_time(5s);
  ASSERT_EQ(heartbeat_.running(), "heartbeat");
  heartbeat_.answer(beat());
  turn();
  ASSERT_EQ(heartbeat_.running(), "serve_tasks");
  EXPECT_EQ(heartbeat_.param(2), R"({"slots":4})");
}

TEST_F(ServedTasksTest, a_worker_that_drains_and_has_jobs_tells_so) {
  given_worker();
  given_running({{.id = 1}});
  worker_->info = [](std::size_t, bool is_draining) { return is_draining ? "draining" : "{}"; };
  worker_->stop();
  turn();
  ASSERT_EQ(heartbeat_.running(), "serve_tasks");
  EXPECT_EQ(heartbeat_.params(), (Params{"7", R"({"mail","report"})", "draining"}));
}

TEST_F(ServedTasksTest, a_worker_that_drains_without_a_job_says_only_good_bye) {
  given_worker();
  claim_.answer(nothing());
  turn();
  worker_->info = [](std::size_t, bool is_draining) { return is_draining ? "draining" : "{}"; };
  worker_->stop();
  claim_.refuse_statement("57014");
  turn();
  for (const std::string& statement : heartbeat_.sent()) EXPECT_NE(statement, "serve_tasks");
  EXPECT_EQ(heartbeat_.running(), "deregister_worker");
}

}  // namespace
}  // namespace pulse
