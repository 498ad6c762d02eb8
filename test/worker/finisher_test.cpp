// How outcomes reach the server: in batches, exactly once as far as can be told.
#include "worker_bench.hpp"

namespace pulse {
namespace {

class FinisherTest : public WorkerBench {
 protected:
  FinisherTest() { are_outcomes_apart_ = true; }

  static TaskProgress progress(std::optional<double> fraction,
                               std::optional<std::string> checkpoint = std::nullopt) {
    TaskProgress report;
    report.fraction = fraction;
    report.checkpoint = std::move(checkpoint);
    return report;
  }
  void report(std::int64_t job_id, const TaskProgress& what) {
    tasks_.at(job_id)->callbacks.on_progress(what);
    turn();
  }
  // Several tasks end in one iteration of the loop.
  void end_together(const std::vector<std::pair<std::int64_t, ExecutionEnd>>& ends) {
    for (const auto& [job_id, end] : ends) {
      const auto on_end = tasks_.at(job_id)->callbacks.on_end;
      on_end(end);
    }
    turn();
  }
};

TEST_F(FinisherTest, what_ends_in_one_turn_travels_together) {
  given_worker(4);
  given_running({{.id = 1}, {.id = 2, .token = 200}, {.id = 3}});
  end_together({{3, success()}, {1, success("{\"a\":\"b\"}")}, {2, success()}});
  ASSERT_EQ(finish_.running(), "complete_many");
  EXPECT_EQ(finish_.params(),
            (Params{"{3,1,2}", "{100,100,200}", R"({NULL,"{\"a\":\"b\"}",NULL})"}));
}

TEST_F(FinisherTest, without_a_result_none_is_sent) {
  given_worker();
  given_running({{.id = 1}});
  end_task(1);
  EXPECT_EQ(finish_.params(), (Params{"{1}", "{100}", std::nullopt}));
}

TEST_F(FinisherTest, what_ends_while_a_batch_is_under_way_is_the_next_batch) {
  given_worker(4);
  given_running({{.id = 1}, {.id = 2}, {.id = 3}});
  end_task(1);
  end_task(2);
  end_task(3);
  EXPECT_EQ(finish_.param(0), "{1}");
  finish_.answer(outcomes({{1, "accepted"}}));
  turn();
  EXPECT_EQ(finish_.param(0), "{2,3}");
}

TEST_F(FinisherTest, each_kind_has_its_own_call) {
  given_worker(4);
  given_running({{.id = 1}, {.id = 2}, {.id = 3}});
  end_together(
      {{1, failure(3, "exited with code 3")}, {2, success()}, {3, failure(100, "give up")}});
  ASSERT_EQ(finish_.running(), "fail_many");
  EXPECT_EQ(finish_.params(), (Params{"{1,3}", "{100,100}", R"({"exited with code 3","give up"})",
                                      "{t,f}", std::nullopt, std::nullopt}));
  finish_.answer(outcomes({{1, "accepted"}, {3, "accepted"}}));
  turn();
  EXPECT_EQ(finish_.running(), "complete_many");
}

TEST_F(FinisherTest, busy_is_asked_again_shortly) {
  given_worker(2);
  given_running({{.id = 1}, {.id = 2}});
  end_together({{1, success()}, {2, success()}});
  finish_.answer(outcomes({{1, "busy"}, {2, "accepted"}}));
  turn();
  EXPECT_EQ(finish_.running(), "");
  pass_time(20ms);
  ASSERT_EQ(finish_.running(), "complete_many");
  EXPECT_EQ(finish_.param(0), "{1}");
  finish_.answer(outcomes({{1, "accepted"}}));
  EXPECT_TRUE(capture_.has("completed job=1"));
}

TEST_F(FinisherTest, stale_is_refused_and_said) {
  given_worker();
  given_running({{.id = 1}});
  end_task(1);
  finish_.answer(outcomes({{1, "stale"}}));
  pass_time(1s);
  EXPECT_EQ(finish_.running(), "");
  EXPECT_TRUE(capture_.has("warning stale job=1 task=mail attempt=1 worker=7"));
}

TEST_F(FinisherTest, after_a_lost_reply_the_same_outcome_is_sent_again) {
  given_worker();
  given_running({{.id = 1}});
  end_task(1, success("5"));
  finish_.lose();
  turn();
  finish_.accept();
  turn();
  ASSERT_EQ(finish_.running(), "complete_many");
  EXPECT_EQ(finish_.params(), (Params{"{1}", "{100}", R"({"5"})"}));
  finish_.answer(outcomes({{1, "accepted"}}));
  EXPECT_TRUE(capture_.has("completed job=1"));
}

TEST_F(FinisherTest, stale_after_a_lost_reply_is_unknown_when_the_job_is_gone) {
  given_worker();
  given_running({{.id = 1}});
  end_task(1);
  finish_.lose();
  turn();
  finish_.accept();
  turn();
  finish_.answer(outcomes({{1, "stale"}}));
  turn();
  ASSERT_EQ(finish_.running(), "get_job");
  EXPECT_EQ(finish_.param(0), "1");
  finish_.refuse_statement("PU005", "job 1 is unknown");
  turn();
  const std::string text = capture_.text();
  EXPECT_NE(text.find("unknown job=1"), std::string::npos) << text;
  EXPECT_EQ(text.find(" stale job=1"), std::string::npos);
}

TEST_F(FinisherTest, stale_after_a_lost_reply_is_refused_when_the_job_lives) {
  given_worker();
  given_running({{.id = 1}});
  end_task(1);
  finish_.lose();
  turn();
  finish_.accept();
  turn();
  finish_.answer(outcomes({{1, "stale"}}));
  turn();
  finish_.answer(QueryResult({"state"}, {"running"}));
  EXPECT_TRUE(capture_.has("stale job=1"));
}

TEST_F(FinisherTest, a_failure_may_have_put_the_job_back_itself) {
  given_worker();
  given_running({{.id = 1}});
  end_task(1, failure(1, "no"));
  finish_.lose();
  turn();
  finish_.accept();
  turn();
  finish_.answer(outcomes({{1, "stale"}}));
  turn();
  finish_.answer(QueryResult({"state"}, {"ready"}));
  EXPECT_TRUE(capture_.has("unknown job=1"));
}

TEST_F(FinisherTest, progress_goes_to_the_server) {
  given_worker();
  given_running({{.id = 1}});
  report(1, progress(0.25));
  ASSERT_EQ(finish_.running(), "progress");
  EXPECT_EQ(finish_.params(),
            (Params{"1", "100", std::nullopt, "0.250000", std::nullopt, std::nullopt}));
}

TEST_F(FinisherTest, reports_that_wait_are_merged) {
  given_worker();
  given_running({{.id = 1}});
  report(1, progress(0.1));
  report(1, progress(0.2, "{\"at\":2}"));
  report(1, progress(0.3));
  finish_.answer(done());
  turn();
  EXPECT_EQ(finish_.param(3), "0.300000");
  EXPECT_EQ(finish_.param(4), "{\"at\":2}");
}

TEST_F(FinisherTest, a_checkpoint_goes_before_the_outcome_of_its_job) {
  given_worker(2);
  given_running({{.id = 1}, {.id = 2}});
  end_task(2);
  tasks_.at(1)->callbacks.on_progress(progress(std::nullopt, "{\"at\":9}"));
  end_task(1);
  ASSERT_EQ(finish_.param(0), "{2}");
  finish_.answer(outcomes({{2, "accepted"}}));
  turn();
  ASSERT_EQ(finish_.running(), "progress");
  EXPECT_EQ(finish_.param(4), "{\"at\":9}");
  finish_.answer(done());
  turn();
  ASSERT_EQ(finish_.running(), "complete_many");
  EXPECT_EQ(finish_.param(0), "{1}");
}

TEST_F(FinisherTest, a_checkpoint_whose_reply_was_lost_is_sent_again) {
  given_worker();
  given_running({{.id = 1}});
  report(1, progress(0.5, "1"));
  finish_.lose();
  turn();
  finish_.accept();
  turn();
  EXPECT_EQ(finish_.running(), "progress");
  EXPECT_EQ(finish_.param(4), "1");
}

TEST_F(FinisherTest, a_checkpoint_that_is_refused_for_now_is_sent_again) {
  given_worker();
  given_running({{.id = 1}});
  report(1, progress(0.5, "1"));
  finish_.refuse_statement("53100", "No space left on device");
  end_task(1);
  EXPECT_EQ(finish_.running(), "");
  pass_beating(100ms);
  ASSERT_EQ(finish_.running(), "progress");
  EXPECT_EQ(finish_.param(4), "1");
  finish_.answer(done());
  turn();
  EXPECT_EQ(finish_.running(), "complete_many");
}

TEST_F(FinisherTest, progress_that_can_never_be_stored_is_not_sent_again) {
  given_worker();
  given_running({{.id = 1}});
  report(1, progress(0.5, "1"));
  finish_.refuse_statement("22P05", "no such character");
  pass_beating(10s);
  EXPECT_EQ(finish_.running(), "");
}

TEST_F(FinisherTest, progress_of_a_claim_that_is_over_kills_its_task) {
  given_worker();
  given_running({{.id = 1}});
  report(1, progress(0.5));
  finish_.refuse_statement("PU001");
  turn();
  EXPECT_TRUE(was_terminated(1));
}

TEST_F(FinisherTest, a_batch_that_one_value_spoils_is_sent_one_by_one) {
  given_worker(3);
  given_running({{.id = 1}, {.id = 2}});
  end_together({{1, success("1")}, {2, success("2")}});
  finish_.refuse_statement("22021", "invalid byte sequence");
  turn();
  EXPECT_EQ(finish_.param(0), "{1}");
  finish_.answer(outcomes({{1, "accepted"}}));
  turn();
  EXPECT_EQ(finish_.param(0), "{2}");
  finish_.refuse_statement("22021", "invalid byte sequence");
  turn();
  ASSERT_EQ(finish_.running(), "fail_many");
  EXPECT_EQ(finish_.param(2), R"({"the result cannot be stored: invalid byte sequence"})");
  EXPECT_EQ(finish_.param(3), "{f}");
}

TEST_F(FinisherTest, an_error_text_that_cannot_be_stored_is_written_in_ascii) {
  given_worker();
  given_running({{.id = 1}});
  end_task(1, failure(1, "caf\xc3\xa9"));
  finish_.refuse_statement("22P05", "no equivalent");
  turn();
  EXPECT_EQ(finish_.param(2), R"({"caf??"})");
}

TEST_F(FinisherTest, a_server_that_refuses_for_now_is_asked_again_with_growing_pauses) {
  given_worker();
  given_running({{.id = 1}});
  end_task(1);
  finish_.refuse_statement("57014");
  turn();
  EXPECT_EQ(finish_.running(), "");
  pass_time(100ms);
  finish_.refuse_statement("57014");
  pass_time(100ms);
  EXPECT_EQ(finish_.running(), "");
  pass_time(100ms);
  EXPECT_EQ(finish_.running(), "complete_many");
}

TEST_F(FinisherTest, an_answer_that_says_nothing_about_a_job_is_no_acceptance) {
  given_worker(2);
  given_running({{.id = 1}, {.id = 2}});
  end_together({{1, success()}, {2, success()}});
  finish_.answer(outcomes({{2, "accepted"}}));
  pass_time(20ms);
  EXPECT_EQ(finish_.param(0), "{1}");
}

TEST_F(FinisherTest, after_a_pause_of_the_loop_a_beat_comes_before_the_outcome) {
  given_worker();
  given_running({{.id = 1}});
  // The process was stopped: no timer ran, no beat was sent.
  clock_.advance(13s);
  const auto on_end = tasks_.at(1)->callbacks.on_end;
  on_end(success());
  turn();
  EXPECT_EQ(finish_.running(), "");
  ASSERT_EQ(heartbeat_.running(), "heartbeat");
  heartbeat_.answer(beat());
  turn();
  EXPECT_EQ(finish_.running(), "complete_many");
}

TEST_F(FinisherTest, after_a_pause_of_the_loop_a_revoked_outcome_is_not_sent) {
  given_worker();
  given_running({{.id = 1}});
  clock_.advance(13s);
  const auto on_end = tasks_.at(1)->callbacks.on_end;
  on_end(success());
  turn();
  heartbeat_.answer(beat("alive", "{1}"));
  pass_time(1s);
  EXPECT_EQ(finish_.running(), "");
  EXPECT_TRUE(capture_.has("stale job=1"));
}

TEST_F(FinisherTest, within_the_limit_no_beat_is_awaited) {
  given_worker();
  given_running({{.id = 1}});
  clock_.advance(12750ms - 1ns);
  const auto on_end = tasks_.at(1)->callbacks.on_end;
  on_end(success());
  turn();
  EXPECT_EQ(finish_.running(), "complete_many");
}

}  // namespace
}  // namespace pulse
