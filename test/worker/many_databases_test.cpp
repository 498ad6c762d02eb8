// One process with several databases: whose turn it is, promises of slots, refused databases, ends.
#include "many_bench.hpp"

namespace pulse {
namespace {

class ManyDatabasesTest : public ManyBench {
 protected:
  // Between any two databases, in each thousand of jobs.
  void expect_equal_turns(std::size_t jobs) {
    constexpr std::size_t kWindow = 1000;
    ASSERT_GE(given_.size(), jobs);
    std::vector<int> counts(servers_.size());
    for (std::size_t i = 0; i < given_.size(); ++i) {
      ++counts[given_[i]];
      if (i >= kWindow) --counts[given_[i - kWindow]];
      if (i + 1 < kWindow) continue;
      for (std::size_t number = 0; number < counts.size(); ++number) {
        ASSERT_NEAR(counts[number], 125, 25) << "d" << number << " in the thousand up to " << i;
      }
    }
  }
  // As long as each database has jobs. `least`: of the tasks that end between two answers.
  void work_off(std::size_t jobs, std::size_t at_once) {
    while (given_.size() < jobs) {
      for (std::size_t i = 0; i < at_once && running() > 0; ++i) end_random_task();
      run();
    }
  }
};

TEST_F(ManyDatabasesTest, eight_backlogs_get_equal_turns_in_each_thousand_claims) {
  given_databases(8, 3);
  for (auto& server : servers_) server->backlog = 1'000'000;
  start();
  work_off(5000, 1);
  expect_equal_turns(5000);
  EXPECT_EQ(most_running_, 3U);
}

TEST_F(ManyDatabasesTest, turns_are_equal_where_many_slots_come_free_at_once) {
  given_databases(8, 40);
  for (auto& server : servers_) server->backlog = 1'000'000;
  start();
  work_off(5000, 17);
  expect_equal_turns(5000);
  EXPECT_EQ(most_running_, 40U);
}

TEST_F(ManyDatabasesTest, jobs_held_ahead_get_equal_turns_too) {
  config_.prefetch = 60;
  given_databases(8, 4);
  for (auto& server : servers_) server->backlog = 1'000'000;
  start();
  while (given_.size() < 5000) {
    clock_.advance(1ms);
    end_random_task();
    clock_.advance(1ms);
    run();
  }
  expect_equal_turns(5000);
  EXPECT_EQ(most_running_, 4U);
}

TEST_F(ManyDatabasesTest, no_slot_is_free_while_any_database_has_a_job) {
  given_databases(5, 6);
  servers_[3]->backlog = 500;
  start();
  EXPECT_EQ(running_of(3), 6U) << "the others have none";
  for (int i = 0; i < 400; ++i) {
    end_random_task();
    if (i % 7 == 0) servers_[static_cast<std::size_t>(i) % 5]->backlog += 3;
    run();
    ASSERT_EQ(running(), 6U) << i;
  }
  EXPECT_EQ(most_running_, 6U);
}

TEST_F(ManyDatabasesTest, a_database_that_becomes_busy_gets_the_next_slot) {
  given_databases(2, 2);
  servers_[0]->backlog = 100;
  start();
  EXPECT_EQ(running_of(0), 2U);
  wake(1, 5);
  EXPECT_EQ(running_of(1), 0U) << "each slot is taken";
  end_task_of(0);
  run();
  EXPECT_EQ(running_of(1), 1U);
}

TEST_F(ManyDatabasesTest, the_slots_of_a_promise_without_an_answer_are_lost_after_its_deadline) {
  given_databases(2, 4);
  start();
  servers_[0]->is_silent = true;
  servers_[0]->backlog = 10;
  servers_[0]->claim.answer(done());  // the wait has ended
  settle(timers_);
  ASSERT_EQ(servers_[0]->claim.running(), "claim");
  EXPECT_EQ(servers_[0]->claim.param(1), "4") << "nobody else has work";
  wake(1, 10);
  EXPECT_EQ(running_of(1), 0U) << "the slots are promised";
  pass_time(SlotPool::kPromiseDeadline);
  EXPECT_EQ(running_of(1), 4U);
  // What comes late waits for a slot, and the next promise is no more than a part.
  servers_[0]->is_silent = false;
  run();
  EXPECT_EQ(running(), 4U);
  EXPECT_EQ(servers_[0]->given, 4);
  for (int i = 0; i < 4; ++i) end_task_of(1);
  run();
  EXPECT_EQ(running_of(0), 4U);
  EXPECT_EQ(most_running_, 4U);
}

TEST_F(ManyDatabasesTest, a_database_that_is_away_holds_nobody_up) {
  given_databases(3, 3);
  servers_[0]->is_silent = true;
  for (auto& server : servers_) server->backlog = 100;
  start();
  EXPECT_EQ(running(), 3U);
  for (int i = 0; i < 60; ++i) {
    end_random_task();
    pass_time(100ms);
    ASSERT_EQ(running(), 3U) << i;
  }
  EXPECT_FALSE(exit_code_);
}

TEST_F(ManyDatabasesTest, a_refused_database_is_tried_again_and_the_others_go_on) {
  given_databases(2, 2);
  servers_[0]->refusal = "3F000";
  servers_[1]->backlog = 10;
  start();
  EXPECT_EQ(running_of(1), 2U);
  EXPECT_FALSE(exit_code_);
  servers_[0]->refusal.clear();
  servers_[0]->backlog = 10;
  pass_time(WorkerGroup::kFirstRetry);
  EXPECT_EQ(servers_[0]->registrations, 1);
  end_task_of(1);
  run();
  end_task_of(1);
  run();
  EXPECT_GE(running_of(0), 1U);
  EXPECT_TRUE(capture_.has("retrying database=d0 delay_ms=5000"));
}

TEST_F(ManyDatabasesTest, the_process_ends_when_every_database_refuses) {
  given_databases(2, 2);
  servers_[0]->refusal = "3F000";
  servers_[1]->refusal = "PU003";
  start();
  EXPECT_EQ(exit_code_, ExitCode::database_gone) << "which may pass, so that a restart may help";
}

TEST_F(ManyDatabasesTest, a_configuration_that_every_database_refuses_stays_refused) {
  given_databases(2, 2);
  for (auto& server : servers_) server->refusal = "PU003";
  start();
  EXPECT_EQ(exit_code_, ExitCode::configuration);
}

TEST_F(ManyDatabasesTest, one_database_given_twice_is_a_usage_error) {
  given_databases(3, 2);
  servers_[2]->identity = servers_[0]->identity;
  start();
  EXPECT_EQ(exit_code_, ExitCode::usage);
  EXPECT_LE(servers_[0]->registrations + servers_[2]->registrations, 1)
      << "it was never registered twice";
  EXPECT_TRUE(capture_.has("give each database once"));
}

TEST_F(ManyDatabasesTest, a_stop_drains_all) {
  given_databases(3, 3);
  for (auto& server : servers_) server->backlog = 10;
  start();
  ASSERT_EQ(running(), 3U);
  group_->take_signal();
  run();
  EXPECT_FALSE(exit_code_);
  while (running() > 0) end_random_task();
  run();
  EXPECT_EQ(exit_code_, ExitCode::drained);
  EXPECT_EQ(given_.size(), 3U) << "nothing was claimed since";
}

TEST_F(ManyDatabasesTest, once_ends_when_every_database_is_exhausted) {
  given_databases(3, 2, /*once=*/true);
  servers_[1]->backlog = 3;
  start();
  EXPECT_FALSE(exit_code_);
  servers_[0]->backlog = 1;  // a task of the other adds a job here
  while (running() > 0) {
    end_random_task();
    run();
  }
  EXPECT_EQ(given_.size(), 4U);
  EXPECT_EQ(exit_code_, ExitCode::drained);
}

TEST_F(ManyDatabasesTest, once_with_a_refused_database_tells_so_at_the_end) {
  given_databases(2, 2, /*once=*/true);
  servers_[0]->refusal = "3F000";
  servers_[1]->backlog = 1;
  start();
  EXPECT_FALSE(exit_code_);
  end_random_task();
  run();
  EXPECT_EQ(exit_code_, ExitCode::database_gone);
}

TEST_F(ManyDatabasesTest, each_line_of_a_database_names_the_database) {
  given_databases(2, 1);
  start();
  EXPECT_TRUE(capture_.has("database=d1"));
  EXPECT_EQ(capture_.count("registered"), 2);
  EXPECT_EQ(capture_.count("registered worker=7 name=bench"), 2);
}

}  // namespace
}  // namespace pulse
