// What is counted of what is logged.
#include "observe/metrics.hpp"

#include <gtest/gtest.h>

#include "log_capture.hpp"

namespace pulse {
namespace {

using namespace std::chrono_literals;

class MetricsTest : public ::testing::Test {
 protected:
  MetricsTest() {
    metrics_.begin_database("");
    capture_.log().listen(
        [this](std::string_view event, Log::Fields fields) { metrics_.take_event(event, fields); });
  }

  void claim(const std::string& task) { log().info("claimed", {{"job", 1}, {"task", task}}); }
  void end(std::string_view event, const std::string& task, std::chrono::nanoseconds ran_for) {
    log().info(event, {{"job", 1}, {"task", task}, {"duration_ms", ran_for}});
  }
  std::string text() const { return metrics_.text(seen_, now_); }
  bool has(const std::string& line) const {
    return ('\n' + text()).find('\n' + line + '\n') != std::string::npos;
  }
  Log& log() { return capture_.log(); }

  // Lines that nobody reads count as well.
  LogCapture capture_{LogFormat::text, LogLevel::error};
  Metrics metrics_{"1.2.3"};
  Health::Seen seen_;
  TimePoint now_{1h};
};

TEST_F(MetricsTest, jobs_are_counted_by_task_and_outcome) {
  claim("mail");
  claim("mail");
  claim("report");
  end("completed", "mail", 250ms);
  end("failed", "mail", 2s);
  end("cancelled", "mail", 2s);
  end("released", "report", 0ms);
  EXPECT_TRUE(has(R"(pulse_jobs_claimed_total{task="mail"} 2)")) << text();
  EXPECT_TRUE(has(R"(pulse_jobs_claimed_total{task="report"} 1)"));
  EXPECT_TRUE(has(R"(pulse_jobs_finished_total{outcome="completed",task="mail"} 1)"));
  EXPECT_TRUE(has(R"(pulse_jobs_finished_total{outcome="failed",task="mail"} 1)"));
  EXPECT_TRUE(has(R"(pulse_jobs_finished_total{outcome="cancelled",task="mail"} 1)"));
  EXPECT_TRUE(has(R"(pulse_jobs_finished_total{outcome="released",task="report"} 1)"));
}

TEST_F(MetricsTest, databases_are_told_apart_by_a_label) {
  Log shop(capture_.log(), "shop");
  shop.info("claimed", {{"job", 1}, {"task", "mail"}});
  shop.warning("reconnecting", {{"connection", "claim"}});
  claim("mail");
  EXPECT_TRUE(has(R"(pulse_jobs_claimed_total{database="shop",task="mail"} 1)")) << text();
  EXPECT_TRUE(has(R"(pulse_jobs_claimed_total{task="mail"} 1)"));
  EXPECT_TRUE(has(R"(pulse_reconnects_total{connection="claim",database="shop"} 1)"));
}

TEST_F(MetricsTest, the_series_of_a_database_begin_at_zero) {
  EXPECT_FALSE(has(R"(pulse_stale_refusals_total{database="node2"} 0)"));
  metrics_.begin_database("node2");
  EXPECT_TRUE(has(R"(pulse_stale_refusals_total{database="node2"} 0)")) << text();
  EXPECT_TRUE(has(R"(pulse_jobs_recovered_total{by="host",database="node2"} 0)"));
  Log(capture_.log(), "node2").warning("stale", {{"job", 1}});
  metrics_.begin_database("node2");
  EXPECT_TRUE(has(R"(pulse_stale_refusals_total{database="node2"} 1)")) << "begun once";
}

TEST_F(MetricsTest, what_ran_is_in_the_histogram_of_its_task) {
  end("completed", "mail", 250ms);
  end("failed", "mail", 2s);
  end("completed", "mail", 300us);
  end("released", "mail", 0ms);
  EXPECT_TRUE(has(R"(pulse_job_duration_seconds_count{task="mail"} 3)")) << text();
  EXPECT_TRUE(has(R"(pulse_job_duration_seconds_sum{task="mail"} 2.2503)"));
  EXPECT_TRUE(has(R"(pulse_job_duration_seconds_bucket{task="mail",le="0.001"} 1)"));
  EXPECT_TRUE(has(R"(pulse_job_duration_seconds_bucket{task="mail",le="0.5"} 2)"));
  EXPECT_TRUE(has(R"(pulse_job_duration_seconds_bucket{task="mail",le="+Inf"} 3)"));
}

TEST_F(MetricsTest, what_goes_wrong_is_counted) {
  log().warning("stale");
  log().warning("unknown");
  log().error("unreportable");
  log().warning("heartbeat_failed");
  log().warning("lost");
  log().warning("claim_skipped");
  log().write(LogLevel::debug, "reconnecting", {{"connection", "claim"}});
  log().info("recovered", {{"jobs", 5}, {"workers_lost", 2}});
  log().info("declared_lost", {{"jobs", 3}});
  EXPECT_TRUE(has("pulse_stale_refusals_total 1")) << text();
  EXPECT_TRUE(has("pulse_unknown_outcomes_total 2"));
  EXPECT_TRUE(has("pulse_heartbeat_failures_total 1"));
  EXPECT_TRUE(has("pulse_worker_losses_total 1"));
  EXPECT_TRUE(has("pulse_claims_skipped_total 1"));
  EXPECT_TRUE(has(R"(pulse_reconnects_total{connection="claim"} 1)"));
  EXPECT_TRUE(has(R"(pulse_jobs_recovered_total{by="sweep"} 5)"));
  EXPECT_TRUE(has(R"(pulse_jobs_recovered_total{by="host"} 3)"));
  EXPECT_TRUE(has(R"(pulse_lost_workers_total{by="sweep"} 2)"));
  EXPECT_TRUE(has(R"(pulse_lost_workers_total{by="host"} 1)"));
}

TEST_F(MetricsTest, counters_that_may_raise_an_alarm_are_there_from_the_start) {
  EXPECT_TRUE(has("pulse_stale_refusals_total 0")) << text();
  EXPECT_TRUE(has("pulse_worker_losses_total 0"));
  EXPECT_TRUE(has("pulse_log_lines_dropped_total 0"));
  EXPECT_TRUE(has(R"(pulse_jobs_recovered_total{by="sweep"} 0)"));
  EXPECT_TRUE(has(R"(pulse_build_info{version="1.2.3"} 1)"));
}

TEST_F(MetricsTest, the_state_of_the_loop_is_told) {
  seen_.last_iteration = now_;
  seen_.state.is_established = true;
  seen_.state.last_good = now_ - 1500ms;
  seen_.state.silence_limit = 20s;
  seen_.state.running = 3;
  seen_.state.prefetched = 4;
  seen_.state.held = 9;
  seen_.state.concurrency = 8;
  EXPECT_TRUE(has("pulse_heartbeat_age_seconds 1.5")) << text();
  EXPECT_TRUE(has("pulse_jobs_running 3"));
  EXPECT_TRUE(has("pulse_jobs_prefetched 4"));
  EXPECT_TRUE(has("pulse_jobs_held 9"));
  EXPECT_TRUE(has("pulse_slots 8"));
  EXPECT_TRUE(has("pulse_worker_ready 1"));
  seen_.state.is_draining = true;
  EXPECT_TRUE(has("pulse_worker_ready 0"));
}

TEST_F(MetricsTest, before_the_first_beat_there_is_no_age) {
  EXPECT_EQ(text().find("pulse_heartbeat_age_seconds"), std::string::npos);
}

TEST_F(MetricsTest, names_of_tasks_cannot_break_the_format) {
  claim("a\"b\\c\nd");
  EXPECT_TRUE(has(R"(pulse_jobs_claimed_total{task="a\"b\\c\nd"} 1)")) << text();
}

TEST_F(MetricsTest, the_number_of_tasks_told_apart_is_bounded) {
  for (int i = 0; i < 1'010; ++i) claim("task-" + std::to_string(i));
  claim("task-5");
  end("completed", "task-1009", 1ms);
  EXPECT_TRUE(has(R"-(pulse_jobs_claimed_total{task="(other)"} 10)-"));
  EXPECT_TRUE(has(R"-(pulse_jobs_claimed_total{task="task-5"} 2)-"));
  EXPECT_TRUE(has(R"-(pulse_jobs_finished_total{outcome="completed",task="(other)"} 1)-"));
  EXPECT_EQ(text().find("task-1005"), std::string::npos);
}

}  // namespace
}  // namespace pulse
