// What waits in front of handlers, and what they take at once.
#include <stdexcept>

#include "handler_bench.hpp"

namespace pulse {
namespace {

class HandlerQueueTest : public HandlerBench {
 protected:
  // One thread that job 1 keeps busy until the gate opens, and these behind it.
  void given_queue(std::vector<GivenJob> jobs, std::size_t max_jobs = 1, Duration beat_in = 5s) {
    handle("gate", stubborn());
    handle(
        "mail", [this](std::span<const HandlerRunPtr> runs) { return run(runs); }, max_jobs);
    given_handlers(1, 1);
    if (beat_in < 5s) {
      claim_.answer(nothing());
      turn();
      pass_time(5s - beat_in);
      claim_.answer(nothing());
      turn();
      ASSERT_EQ(claim_.running(), "claim");
    }
    jobs.insert(jobs.begin(), {.id = 1, .identifier = "gate"});
    given_jobs(jobs);
    begun_.pass();
  }

  std::vector<ExecutionEnd> run(std::span<const HandlerRunPtr> runs) {
    std::vector<std::int64_t> ids;
    for (const HandlerRunPtr& run : runs) ids.push_back(run->input().job_id);
    {
      const std::lock_guard lock(ran_mutex_);
      ran_.push_back(ids);
    }
    if (does_throw_) throw std::runtime_error("all of them");
    return std::vector<ExecutionEnd>(max_answers_.value_or(ids.size()), success());
  }

  // All that handlers were given, in order.
  using Ran = std::vector<std::vector<std::int64_t>>;
  Ran ran() {
    const std::lock_guard lock(ran_mutex_);
    return ran_;
  }
  // Opens the gate, and waits for the ends of so many jobs.
  void run_all(std::size_t jobs) {
    gate_.open();
    while (held_ends_ < jobs) {
      if (finish_.running().empty()) take_messages();
      if (finish_.running().empty()) continue;
      const bool has_failed = finish_.running() == "fail_many";
      statements_.push_back(finish_.running() + finish_.param(0) +
                            (has_failed ? finish_.param(2) : ""));
      std::vector<std::int64_t> ids = QueryResult({"ids"}, {finish_.param(0)})[0].integers("ids");
      held_ends_ += ids.size();
      accept(ids);
    }
  }

  bool does_throw_ = false;
  std::optional<std::size_t> max_answers_;
  std::vector<std::string> statements_;

 private:
  std::size_t held_ends_ = 0;
  std::mutex ran_mutex_;
  Ran ran_;
};

TEST_F(HandlerQueueTest, jobs_held_ahead_follow_in_order) {
  given_queue({{.id = 2}, {.id = 3}, {.id = 4}});
  run_all(4);
  EXPECT_EQ(ran(), (Ran{{2}, {3}, {4}}));
}

TEST_F(HandlerQueueTest, a_batch_takes_what_is_there_up_to_its_bound) {
  given_queue({{.id = 2}, {.id = 3}, {.id = 4}, {.id = 5}, {.id = 6}}, 3);
  run_all(6);
  EXPECT_EQ(ran(), (Ran{{2, 3, 4}, {5, 6}}));
}

TEST_F(HandlerQueueTest, a_job_that_must_start_is_claimed_for_a_free_thread_only) {
  config_.batch_slots = 3;
  given_handlers(1, 1, /*prefetch=*/0);
  EXPECT_EQ(claim_.param(1), "4");
  EXPECT_EQ(claim_.param(3), "1");
  worker_->set_threads_in_use([] { return 1; });
  claim_.answer(nothing());
  turn();
  EXPECT_EQ(claim_.running(), "claim") << "a batch is filled up";
  EXPECT_EQ(claim_.param(1), "4");
  EXPECT_EQ(claim_.param(3), "0");
  claim_.answer(nothing());
  turn();
  EXPECT_EQ(claim_.running(), "") << "once";
}

TEST_F(HandlerQueueTest, what_has_not_begun_at_its_limit_goes_back) {
  given_queue({{.id = 2, .timeout = "1.000000"}, {.id = 3}});
  pass_beating(1s);
  ASSERT_EQ(finish_.running(), "release");
  EXPECT_EQ(finish_.param(0), "{2}");
  accept({2});
  run_all(2);
  EXPECT_EQ(ran(), Ran{{3}});
}

TEST_F(HandlerQueueTest, an_exception_fails_the_whole_batch) {
  does_throw_ = true;
  given_queue({{.id = 2}, {.id = 3}}, 3);
  run_all(3);
  EXPECT_EQ(statements_,
            (std::vector<std::string>{"complete_many{1}",
                                      R"(fail_many{2,3}{"all of them","all of them"})"}));
}

TEST_F(HandlerQueueTest, a_job_without_an_answer_fails) {
  max_answers_ = 1;
  given_queue({{.id = 2}, {.id = 3}}, 3);
  run_all(3);
  EXPECT_EQ(statements_.back(), R"(fail_many{3}{"the handler answered for 1 of 2 jobs"})");
}

TEST_F(HandlerQueueTest, draining_gives_back_what_has_not_begun) {
  given_queue({{.id = 2}, {.id = 3}});
  worker_->stop();
  turn();
  ASSERT_EQ(finish_.running(), "release");
  EXPECT_EQ(finish_.param(0), "{2,3}");
  accept({2, 3});
  run_all(1);
  EXPECT_EQ(ran(), Ran{}) << "what was given back is never run";
  EXPECT_EQ(heartbeat_.running(), "deregister_worker");
}

TEST_F(HandlerQueueTest, what_waits_for_half_a_heartbeat_goes_back) {
  given_queue({{.id = 2}});
  pass_beating(2500ms - 1ns);
  EXPECT_EQ(finish_.running(), "");
  pass_beating(1ns);
  ASSERT_EQ(finish_.running(), "release");
  EXPECT_EQ(finish_.param(0), "{2}");
  accept({2});
  run_all(1);
  EXPECT_EQ(ran(), Ran{});
}

TEST_F(HandlerQueueTest, a_cancelled_job_never_begins) {
  given_queue({{.id = 2}, {.id = 3}}, 1, 1s);
  hear(beat("alive", "{}", "{2}"));
  take_messages_until("fail_many");
  EXPECT_EQ(finish_.param(0), "{2}");
  EXPECT_EQ(finish_.param(2), R"({"cancelled"})");
  accept({2});
  EXPECT_TRUE(capture_.has("info cancelled job=2")) << capture_.text();
  EXPECT_TRUE(capture_.has("outcome=cancelled")) << capture_.text();
  EXPECT_FALSE(capture_.has("failed job=2")) << "no task has failed";
  gate_.open();
  while (ran().empty()) std::this_thread::yield();
  EXPECT_EQ(ran(), (Ran{{3}}));
}

TEST_F(HandlerQueueTest, a_lost_job_never_begins) {
  given_queue({{.id = 2}}, 1, 1s);
  hear(beat("alive", "{2}"));
  run_all(1);
  EXPECT_EQ(ran(), Ran{});
}

TEST_F(HandlerQueueTest, the_time_in_the_queue_is_not_the_job_s) {
  given_queue({{.id = 2}});
  clock_.advance(2s);
  run_all(2);
  EXPECT_EQ(capture_.text().find("duration_ms=2"), std::string::npos);
}

TEST_F(HandlerQueueTest, fast_jobs_are_held_ahead_up_to_the_bound) {
  handle("mail", doing([](HandlerRun&) {}));
  given_handlers(1, 1, /*prefetch=*/300);
  clock_.advance(10s);  // the round trip of the claim
  given_jobs({{.id = 1}});
  take_messages();
  ASSERT_EQ(claim_.running(), "claim");
  EXPECT_EQ(claim_.param(1), "301");
  EXPECT_EQ(claim_.param(3), "1");
}

TEST(HandlerPoolTest, a_handler_that_never_returns_is_left_behind) {
  struct Gates {
    Gate begun;
    Gate go_on;
    Gate returned;
  };
  const auto gates = std::make_shared<Gates>();  // the thread has its share
  const auto outbox = std::make_shared<HandlerOutbox>([] {});
  const Handlers handlers{{"mail", {1, [gates](std::span<const HandlerRunPtr>) {
                                      gates->begun.open();
                                      gates->go_on.pass();
                                      gates->returned.open();
                                      return std::vector<ExecutionEnd>(1);
                                    }}}};
  TaskInput input;
  input.identifier = "mail";
  const auto run = std::make_shared<HandlerRun>(input, outbox);
  {
    HandlerPool pool(2, handlers, outbox);
    pool.add({run});
    gates->begun.pass();
    EXPECT_TRUE(pool.is_running(run));
  }
  outbox->close();
  gates->go_on.open();
  gates->returned.pass();
}

}  // namespace
}  // namespace pulse
