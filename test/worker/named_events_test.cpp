// The events that people watch for: each is told when it has come true, and not before.
#include "worker_bench.hpp"

namespace pulse {
namespace {

class NamedEvents : public WorkerBench {
 protected:
  NamedEvents() {
    are_outcomes_apart_ = true;
    capture_.log().listen([this](std::string_view event, Log::Fields fields) {
      std::string& told = told_[std::string(event)];
      told.clear();
      for (const LogField& field : fields) {
        if (const auto* text = std::get_if<std::string>(&field.value)) {
          told += std::string(field.key) + '=' + *text + ' ';
        }
        if (const auto* number = std::get_if<std::int64_t>(&field.value)) {
          told += std::string(field.key) + '=' + std::to_string(*number) + ' ';
        }
      }
    });
  }

  bool is_told(const std::string& event) const { return told_.contains(event); }
  // Of the last one.
  bool says(const std::string& event, const std::string& field) const {
    const auto told = told_.find(event);
    return told != told_.end() && told->second.find(field + ' ') != std::string::npos;
  }

  std::map<std::string, std::string> told_;  // event -> its fields
};

TEST_F(NamedEvents, registered_once_the_server_has_given_an_id) {
  given_unregistered_worker();
  heartbeat_.accept();
  turn();
  ASSERT_EQ(heartbeat_.running(), "register_worker");
  EXPECT_FALSE(is_told("registered"));
  heartbeat_.answer(registered(7));
  EXPECT_TRUE(says("registered", "worker=7"));
  EXPECT_TRUE(says("registered", "name=bench"));
  EXPECT_TRUE(says("registered", "heartbeat_interval_ms=5000"));
  EXPECT_TRUE(says("registered", "sweep_threshold_ms=20000"));
}

TEST_F(NamedEvents, reconciled_once_the_server_has_said_what_is_held) {
  given_worker(2);
  given_running({{.id = 1}});
  claim_.lose();
  turn();
  claim_.accept();
  turn();
  ASSERT_EQ(claim_.running(), "held");
  EXPECT_FALSE(is_told("reconciled"));
  claim_.answer(claimed({{.id = 1}, {.id = 2, .token = 200}}));
  EXPECT_TRUE(says("reconciled", "worker=7"));
  EXPECT_TRUE(says("reconciled", "held=2"));
  EXPECT_TRUE(says("reconciled", "released=1"));
}

TEST_F(NamedEvents, recovered_once_a_sweep_has_found_something) {
  sweep_interval_ = "5.000000";
  given_worker(2);
  given_running({{.id = 1}});
  claim_.notice("PU100");
  turn();
  ASSERT_EQ(finish_.running(), "sweep");
  finish_.answer(swept(0));
  EXPECT_TRUE(is_told("sweep"));
  EXPECT_FALSE(is_told("recovered")) << "a sweep that found nothing is none";
  claim_.notice("PU100");
  turn();
  ASSERT_EQ(finish_.running(), "sweep");
  EXPECT_FALSE(is_told("recovered"));
  finish_.answer(swept(3));
  EXPECT_TRUE(says("recovered", "jobs=3"));
}

TEST_F(NamedEvents, heartbeat_failed_once_a_beat_is_refused_or_overdue) {
  given_worker();
  pass_time(5s);
  ASSERT_EQ(heartbeat_.running(), "heartbeat");
  heartbeat_.answer(beat());
  pass_time(5s);
  ASSERT_EQ(heartbeat_.running(), "heartbeat");
  EXPECT_FALSE(is_told("heartbeat_failed")) << "it may still be answered";
  heartbeat_.refuse_statement("57014", "canceling statement");
  EXPECT_TRUE(says("heartbeat_failed", "statement=heartbeat"));
  EXPECT_TRUE(says("heartbeat_failed", "sqlstate=57014"));
  told_.clear();
  pass_time(5s);
  ASSERT_EQ(heartbeat_.running(), "heartbeat");
  pass_time(5s - 1ns);
  EXPECT_FALSE(is_told("heartbeat_failed"));
  pass_time(1ns);
  EXPECT_TRUE(says("heartbeat_failed", "statement=heartbeat"));
}

TEST_F(NamedEvents, heartbeat_failed_once_a_registration_is_refused) {
  given_unregistered_worker();
  heartbeat_.accept();
  turn();
  EXPECT_FALSE(is_told("heartbeat_failed"));
  heartbeat_.refuse_statement("53200", "out of memory");
  EXPECT_TRUE(says("heartbeat_failed", "statement=register_worker"));
  EXPECT_FALSE(is_told("registered"));
}

TEST_F(NamedEvents, claim_skipped_once_in_each_spell) {
  given_worker();
  claim_.refuse_statement("PU008", "claims are off");
  turn();
  EXPECT_TRUE(says("claim_skipped", "reason=claim: PU008 claims are off"));
  told_.clear();
  pass_beating(5s);
  ASSERT_EQ(claim_.running(), "claim");
  claim_.refuse_statement("PU008", "claims are off");
  turn();
  EXPECT_FALSE(is_told("claim_skipped")) << "nothing has changed";
  pass_beating(5s);
  ASSERT_EQ(claim_.running(), "claim");
  claim_.answer(nothing());
  turn();
  ASSERT_EQ(claim_.running(), "wait_for_job");
  EXPECT_FALSE(is_told("claim_skipped")) << "that nothing is ready is no reason";
  clock_.advance(13s);  // the process was stopped
  claim_.answer(nothing());
  turn();
  EXPECT_EQ(claim_.running(), "");
  EXPECT_TRUE(says("claim_skipped", "reason=no good heartbeat lately"));
}

TEST_F(NamedEvents, lost_once_the_server_says_so) {
  given_worker();
  pass_time(5s);
  heartbeat_.answer(beat());
  pass_time(5s);
  ASSERT_EQ(heartbeat_.running(), "heartbeat");
  EXPECT_FALSE(is_told("lost"));
  heartbeat_.answer(beat("lost"));
  EXPECT_TRUE(says("lost", "worker=7"));
  EXPECT_TRUE(says("lost", "reason=the server says so"));
}

TEST_F(NamedEvents, lost_once_a_statement_is_refused_for_the_worker) {
  given_worker();
  EXPECT_FALSE(is_told("lost"));
  claim_.refuse_statement("PU002", "worker 7 is lost");
  EXPECT_TRUE(says("lost", "reason=worker 7 is lost"));
}

}  // namespace
}  // namespace pulse
