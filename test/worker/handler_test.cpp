// C++ handlers: what becomes of their answers, and how they are told to stop.
#include <stdexcept>

#include "handler_bench.hpp"

namespace pulse {
namespace {

using HandlerTest = HandlerBench;

ExecutionEnd snooze(Duration delay, std::optional<std::string> checkpoint) {
  ExecutionEnd end;
  end.kind = ExecutionEnd::Kind::snoozed;
  end.again_in = delay;
  end.checkpoint = std::move(checkpoint);
  return end;
}

TEST_F(HandlerTest, what_a_handler_returns_completes_its_job) {
  handle("mail", [this](std::span<const HandlerRunPtr> runs) {
    return std::vector{success(runs[0]->input().payload_json)};
  });
  given_handlers(1, 1);
  given_jobs({{.id = 1}});
  take_messages();
  ASSERT_EQ(finish_.running(), "complete_many");
  EXPECT_EQ(finish_.params(), (Params{"{1}", "{100}", R"({"{\"n\":1}"})"}));
}

TEST_F(HandlerTest, an_exception_fails_its_job_and_no_other) {
  handle("mail", doing([](HandlerRun& run) {
           if (run.input().job_id == 1) throw std::runtime_error("no such address");
         }));
  given_handlers(1, 2);
  given_jobs({{.id = 1}, {.id = 2}});
  take_messages_until("fail_many");
  EXPECT_EQ(finish_.param(0), "{1}");
  EXPECT_EQ(finish_.param(2), R"({"no such address"})");
  EXPECT_EQ(finish_.param(3), "{t}");
  accept({1});
  if (finish_.running().empty()) take_messages_until("complete_many");
  EXPECT_EQ(finish_.param(0), "{2}");
  EXPECT_TRUE(capture_.has("reason=\"no such address\"")) << "the cause is in the log";
}

TEST_F(HandlerTest, where_output_is_discarded_an_exception_stays_out_of_the_log) {
  config_.task_output = TaskOutputUse::discard;
  handle("mail", doing([](HandlerRun&) { throw std::runtime_error("no such address"); }));
  given_handlers(1, 1);
  given_jobs({{.id = 1}});
  take_messages_until("fail_many");
  accept({1});
  EXPECT_FALSE(capture_.has("no such address"));
}

TEST_F(HandlerTest, whatever_is_thrown_fails_the_job) {
  handle("mail", doing([](HandlerRun&) { throw 42; }));
  given_handlers(1, 1);
  given_jobs({{.id = 1}});
  take_messages_until("fail_many");
  EXPECT_EQ(finish_.param(2), R"({"an exception that is no std::exception"})");
}

TEST_F(HandlerTest, an_error_that_is_no_text_is_stored_as_text) {
  handle("mail", doing([](HandlerRun&) { throw std::runtime_error("\xff!"); }));
  given_handlers(1, 1);
  given_jobs({{.id = 1}});
  take_messages_until("fail_many");
  EXPECT_EQ(finish_.param(2), "{\"\xef\xbf\xbd!\"}");
}

TEST_F(HandlerTest, a_job_without_a_handler_fails) {
  handle("report", answering(success()));
  given_handlers(1, 1);
  given_jobs({{.id = 1}});
  ASSERT_EQ(claim_.with_claim(), "fail_many");
  EXPECT_EQ(claim_.with_claim_params()[2], R"({"this worker has no handler for mail"})");
}

TEST_F(HandlerTest, a_failure_may_say_when_it_is_tried_again) {
  ExecutionEnd end = failure(1, "later");
  end.again_in = 90s;
  handle("mail", answering(end));
  given_handlers(1, 1);
  given_jobs({{.id = 1}});
  take_messages_until("fail_many");
  EXPECT_EQ(finish_.param(4), R"({"90000 milliseconds"})");
}

TEST_F(HandlerTest, a_snoozed_job_goes_back_with_its_checkpoint) {
  handle("mail", answering(snooze(5s, R"({"row":7})")));
  given_handlers(1, 1);
  given_jobs({{.id = 1}});
  take_messages_until("snooze");
  EXPECT_EQ(finish_.params(), (Params{"1", "100", "5000 milliseconds", R"({"row":7})"}));
  accept({1});
  EXPECT_TRUE(capture_.has("snoozed job=1"));
}

TEST_F(HandlerTest, a_snooze_of_a_claim_that_is_over_is_stale) {
  handle("mail", answering(snooze(5s, std::nullopt)));
  given_handlers(1, 1);
  given_jobs({{.id = 1}});
  take_messages_until("snooze");
  finish_.refuse_statement("PU001");
  turn();
  EXPECT_EQ(finish_.running(), "") << "it is not sent again";
  EXPECT_TRUE(capture_.has("stale job=1"));
}

TEST_F(HandlerTest, a_checkpoint_that_cannot_be_stored_fails_its_job) {
  handle("mail", answering(snooze(5s, "no JSON")));
  given_handlers(1, 1);
  given_jobs({{.id = 1}});
  take_messages_until("snooze");
  finish_.refuse_statement("22P02", "invalid input syntax");
  turn();
  ASSERT_EQ(finish_.running(), "fail_many");
  EXPECT_EQ(finish_.param(3), "{f}");
}

TEST_F(HandlerTest, progress_is_sent_at_most_once_a_second) {
  Gate said_more;
  handle("mail", doing([&](HandlerRun& run) {
           run.report({.fraction = 0.1, .stage = "begin"});
           begun_.open();
           said_more.pass();
           for (int i = 0; i < 1000; ++i) run.report({.fraction = 0.5});
           run.report({.message = "half"});
           gate_.pass();
         }));
  given_handlers(1, 1);
  given_jobs({{.id = 1}});
  take_messages();
  ASSERT_EQ(finish_.running(), "progress");
  EXPECT_EQ(finish_.params(),
            (Params{"1", "100", std::nullopt, "0.100000", std::nullopt, "begin"}));
  finish_.answer(done());
  said_more.open();
  take_messages();
  EXPECT_EQ(finish_.running(), "");
  while (finish_.sent().size() < 3) pass_beating(1s);  // set_up, progress, progress
  EXPECT_EQ(finish_.running(), "progress");
  EXPECT_EQ(finish_.param(3), "0.500000");
  finish_.answer(done());
  gate_.open();
  take_messages_until("complete_many");
}

TEST_F(HandlerTest, a_last_checkpoint_goes_before_the_outcome) {
  handle("mail", doing([](HandlerRun& run) {
           run.report({.checkpoint = "1"});
           run.report({.checkpoint = "2"});
         }));
  given_handlers(1, 1);
  given_jobs({{.id = 1}});
  take_messages_until("complete_many");
  EXPECT_EQ(last_checkpoint_, "2");
}

TEST_F(HandlerTest, cancelling_reaches_the_stop_token) {
  handle("mail", until_stopped());
  given_handlers(1, 1);
  given_jobs({{.id = 1}});
  begun_.pass();
  hear(beat("alive", "{}", "{1}"));
  take_messages_until("fail_many");
  EXPECT_EQ(reason_, EndReason::cancelled);
  EXPECT_EQ(finish_.param(3), "{f}") << "for good";
}

TEST_F(HandlerTest, the_timeout_reaches_the_stop_token) {
  handle("mail", until_stopped());
  given_handlers(1, 1);
  given_jobs({{.id = 1, .timeout = "1.000000"}});
  begun_.pass();
  pass_beating(1s);
  take_messages_until("fail_late");
  EXPECT_EQ(reason_, EndReason::timeout);
  EXPECT_EQ(finish_.param(2), R"({"timed out after 1s"})");
}

TEST_F(HandlerTest, a_lost_claim_reaches_the_stop_token_and_is_not_reported) {
  handle("mail", until_stopped());
  given_handlers(1, 1);
  given_jobs({{.id = 1}});
  begun_.pass();
  hear(beat("alive", "{1}"));
  take_messages();
  EXPECT_EQ(reason_, EndReason::revoked);
  EXPECT_EQ(finish_.running(), "");
  EXPECT_EQ(claim_.running(), "claim") << "its slot is free";
}

TEST_F(HandlerTest, an_answer_at_the_end_of_the_grace_counts) {
  handle("mail", until_stopped(snooze(0s, "7")));
  given_handlers(1, 1);
  given_jobs({{.id = 1}});
  begun_.pass();
  worker_->stop();
  worker_->stop();
  take_messages_until("snooze");
  EXPECT_EQ(reason_, EndReason::interrupted);
  EXPECT_EQ(finish_.param(3), "7");
}

TEST_F(HandlerTest, a_failure_at_the_end_of_the_grace_is_an_interruption) {
  handle("mail", until_stopped(failure(1, "stopped")));
  given_handlers(1, 1);
  given_jobs({{.id = 1}});
  begun_.pass();
  worker_->stop();
  worker_->stop();
  take_messages();
  EXPECT_EQ(finish_.running(), "");
  EXPECT_EQ(heartbeat_.running(), "deregister_worker");
}

TEST_F(HandlerTest, a_handler_that_does_not_stop_ends_the_process) {
  policy_.stop_grace = 3s;
  handle("mail", stubborn());
  given_handlers(1, 1);
  given_jobs({{.id = 1, .timeout = "1.000000"}});
  begun_.pass();
  pass_beating(4s - 1ns);
  EXPECT_EQ(ended_, 0);
  pass_beating(1ns);
  EXPECT_EQ(ended_, 1);
  gate_.open();
  take_messages();
  EXPECT_TRUE(capture_.has("stubborn job=1 task=mail worker=7 reason=timeout"));
}

TEST_F(HandlerTest, at_the_end_of_the_grace_there_is_less_patience) {
  handle("mail", stubborn());
  given_handlers(1, 1);
  given_jobs({{.id = 1}});
  begun_.pass();
  worker_->stop();
  worker_->stop();
  pass_time(2s);
  EXPECT_EQ(ended_, 1);
  gate_.open();
  take_messages();
}

TEST_F(HandlerTest, who_embeds_it_may_keep_the_process) {
  std::vector<std::int64_t> asked;
  policy_.on_stubborn = [&](const HandlerRunPtr& run) {
    asked.push_back(run->input().job_id);
    return false;
  };
  handle("mail", stubborn());
  given_handlers(1, 1);
  given_jobs({{.id = 1, .timeout = "1.000000"}});
  begun_.pass();
  pass_beating(1min);
  EXPECT_EQ(asked, (std::vector<std::int64_t>{1})) << "once";
  EXPECT_EQ(ended_, 0);
  gate_.open();
  take_messages_until("fail_late");
}

TEST_F(HandlerTest, a_handler_that_stops_in_time_ends_nothing) {
  handle("mail", until_stopped());
  given_handlers(1, 1);
  given_jobs({{.id = 1, .timeout = "1.000000"}});
  begun_.pass();
  pass_beating(1s);
  take_messages_until("fail_late");
  pass_beating(1min);
  EXPECT_EQ(ended_, 0);
}

}  // namespace
}  // namespace pulse
