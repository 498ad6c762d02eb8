// What a task is told about its job, and what it must not be told.
#include "task/executable/environment.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

namespace pulse {
namespace {

using nlohmann::json;

TaskInput some_input() {
  TaskInput input;
  input.job_id = 42;
  input.token = (1LL << 40) + 7;
  input.identifier = "mail/send";
  input.attempt = 2;
  input.max_attempts = 25;
  input.crashes = 1;
  input.priority = -3;
  input.run_at = "2024-05-01T10:00:00+00:00";
  input.created_at = "2024-05-01T09:00:00+00:00";
  input.scheduled_for = "2024-05-01T09:30:00+00:00";
  input.queue_name = "mail";
  input.job_key = "welcome:5";
  input.flags = {"slow", "eu"};
  input.last_error = "it \"failed\"";
  input.recovered = "session";
  input.worker_id = 9;
  input.worker_name = "host-1";
  input.checkpoint_json = R"({"z": 1.10, "a": 2})";
  input.parents_json = R"([{"id": 7, "result": 1.50}])";
  input.traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  input.payload_json = "{\"to\":\n 12345678901234567890123}";
  return input;
}

std::map<std::string, std::string> variables_of(const TaskInput& input,
                                                std::vector<const char*> inherited) {
  inherited.push_back(nullptr);
  std::map<std::string, std::string> variables;
  for (const std::string& variable : task_environment(input, inherited.data())) {
    const std::size_t equals = variable.find('=');
    EXPECT_TRUE(variables.emplace(variable.substr(0, equals), variable.substr(equals + 1)).second)
        << variable << " comes twice";
  }
  return variables;
}

TEST(TaskEnvironment, what_the_operator_gives_wins_over_what_is_inherited) {
  const char* const inherited[] = {"PATH=/bin", "HOME=/h", nullptr};
  const auto variables = task_environment(TaskInput{}, inherited, {"A=1", "PATH=/app", "A=2"});
  EXPECT_EQ(std::count(variables.begin(), variables.end(), "PATH=/bin"), 0);
  EXPECT_EQ(std::count(variables.begin(), variables.end(), "PATH=/app"), 1);
  EXPECT_EQ(std::count(variables.begin(), variables.end(), "A=1"), 0);
  EXPECT_EQ(std::count(variables.begin(), variables.end(), "A=2"), 1);
  EXPECT_EQ(std::count(variables.begin(), variables.end(), "HOME=/h"), 1);
}

TEST(TaskEnvironment, only_named_variables_are_inherited) {
  const auto variables = variables_of(TaskInput{}, {"PATH=/bin",
                                                    "HOME=/h",
                                                    "LANG=C",
                                                    "LC_ALL=C",
                                                    "LC_TIME=de",
                                                    "TZ=UTC",
                                                    "TMPDIR=/t",
                                                    "USER=u",
                                                    "LOGNAME=l",
                                                    "SHELL=/bin/sh",
                                                    "PGPASSWORD=p",
                                                    "PGHOST=h",
                                                    "PGSERVICEFILE=f",
                                                    "DATABASE_URL=d",
                                                    "LD_PRELOAD=x",
                                                    "BASH_ENV=b",
                                                    "PATHOLOGY=n",
                                                    "HOMEWARD=n",
                                                    "=odd",
                                                    "LCD=n",
                                                    "PULSE_TOKEN=forged",
                                                    "TRACEPARENT=of the worker",
                                                    "PULSE_DATABASE_URL=d",
                                                    "no equals sign"});
  const std::vector<std::pair<std::string, std::string>> inherited = {
      {"PATH", "/bin"}, {"HOME", "/h"},   {"LANG", "C"}, {"LC_ALL", "C"},  {"LC_TIME", "de"},
      {"TZ", "UTC"},    {"TMPDIR", "/t"}, {"USER", "u"}, {"LOGNAME", "l"}, {"SHELL", "/bin/sh"}};
  for (const auto& [name, value] : inherited) EXPECT_EQ(variables.at(name), value);
  std::size_t own = 0;
  for (const auto& [name, value] : variables) {
    if (name.starts_with("PULSE_") || name.starts_with("GRAPHILE_WORKER_")) ++own;
  }
  EXPECT_EQ(variables.size(), inherited.size() + own);
  EXPECT_EQ(variables.at("PULSE_TOKEN"), "0");
}

TEST(TaskEnvironment, the_job_is_described) {
  const std::map<std::string, std::string> expected = {
      {"PATH", "/bin"},
      {"PULSE_JOB_ID", "42"},
      {"PULSE_TOKEN", "1099511627783"},
      {"PULSE_TASK", "mail/send"},
      {"PULSE_ATTEMPT", "2"},
      {"PULSE_MAX_ATTEMPTS", "25"},
      {"PULSE_RECOVERED", "session"},
      {"PULSE_QUEUE", "mail"},
      {"PULSE_PRIORITY", "-3"},
      {"PULSE_SCHEDULED_FOR", "2024-05-01T09:30:00+00:00"},
      {"PULSE_WORKER", "host-1"},
      {"PULSE_WORKER_ID", "9"},
      {"PULSE_FD", "3"},
      {"TRACEPARENT", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"},
      {"GRAPHILE_WORKER_PAYLOAD_FORMAT", "json"},
      {"GRAPHILE_WORKER_TASK_IDENTIFIER", "mail/send"},
      {"GRAPHILE_WORKER_JOB_ID", "42"},
      {"GRAPHILE_WORKER_JOB_KEY", "welcome:5"},
      {"GRAPHILE_WORKER_JOB_ATTEMPTS", "2"},
      {"GRAPHILE_WORKER_JOB_MAX_ATTEMPTS", "25"},
      {"GRAPHILE_WORKER_JOB_PRIORITY", "-3"},
      {"GRAPHILE_WORKER_JOB_RUN_AT", "2024-05-01T10:00:00+00:00"},
  };
  EXPECT_EQ(variables_of(some_input(), {"PATH=/bin"}), expected);
}

TEST(TaskEnvironment, what_a_job_does_not_have_is_empty_and_a_path_is_always_there) {
  const auto variables = variables_of(TaskInput{}, {});
  EXPECT_EQ(variables.at("PULSE_QUEUE"), "");
  EXPECT_EQ(variables.at("PULSE_RECOVERED"), "");
  EXPECT_EQ(variables.at("GRAPHILE_WORKER_JOB_KEY"), "");
  EXPECT_NE(variables.at("PATH"), "");
  EXPECT_EQ(variables_of(TaskInput{}, {}).size(), task_environment(TaskInput{}, nullptr).size());
}

TEST(TaskEnvironment, a_value_too_long_for_a_variable_is_left_out) {
  TaskInput input = some_input();
  input.job_key = std::string(200'000, 'k');
  EXPECT_FALSE(variables_of(input, {}).contains("GRAPHILE_WORKER_JOB_KEY"));
  EXPECT_EQ(json::parse(task_stdin(input))["job"]["job_key"], *input.job_key);
}

TEST(TaskStdin, the_document_has_payload_and_job) {
  const json document = json::parse(task_stdin(some_input()));
  EXPECT_EQ(document.size(), 2U);
  const json expected = {{"id", 42},
                         {"token", 1099511627783},
                         {"identifier", "mail/send"},
                         {"queue_name", "mail"},
                         {"priority", -3},
                         {"run_at", "2024-05-01T10:00:00+00:00"},
                         {"created_at", "2024-05-01T09:00:00+00:00"},
                         {"scheduled_for", "2024-05-01T09:30:00+00:00"},
                         {"attempt", 2},
                         {"attempts", 2},
                         {"max_attempts", 25},
                         {"crashes", 1},
                         {"job_key", "welcome:5"},
                         {"flags", {"slow", "eu"}},
                         {"last_error", "it \"failed\""},
                         {"recovered", "session"},
                         {"worker_id", 9},
                         {"worker_name", "host-1"},
                         {"checkpoint", {{"z", 1.1}, {"a", 2}}},
                         {"parents", json::array({{{"id", 7}, {"result", 1.5}}})},
                         {"traceparent", *some_input().traceparent},
                         {"id_text", "42"},
                         {"token_text", "1099511627783"},
                         {"worker_id_text", "9"}};
  EXPECT_EQ(document["job"], expected);
}

TEST(TaskStdin, what_others_wrote_keeps_its_own_text) {
  const TaskInput input = some_input();
  const std::string text = task_stdin(input);
  EXPECT_NE(text.find(*input.payload_json), std::string::npos);
  EXPECT_NE(text.find(*input.checkpoint_json), std::string::npos);
  EXPECT_NE(text.find(*input.parents_json), std::string::npos);
}

TEST(TaskStdin, what_a_job_does_not_have_is_null) {
  const json document = json::parse(task_stdin(TaskInput{}));
  EXPECT_TRUE(document["payload"].is_null());
  for (const char* name : {"queue_name", "job_key", "last_error", "recovered", "checkpoint",
                           "parents", "traceparent"}) {
    EXPECT_TRUE(document["job"][name].is_null()) << name;
  }
  EXPECT_EQ(document["job"]["flags"], json::array());
}

}  // namespace
}  // namespace pulse
