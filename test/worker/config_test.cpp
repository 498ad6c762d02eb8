// The command line: what is accepted, and what bad usage is told.
#include "config.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace pulse {
namespace {

using namespace std::chrono_literals;

std::variant<Config, EarlyExit> parsed_config(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "pulse-worker");
  return parse_command_line(static_cast<int>(arguments.size()), arguments.data());
}

Config must_parse(const std::vector<const char*>& arguments) {
  auto result = parsed_config(arguments);
  if (const auto* early = std::get_if<EarlyExit>(&result)) {
    ADD_FAILURE() << early->text;
    return {};
  }
  return std::get<Config>(result);
}

void expect_usage_error(const std::vector<const char*>& arguments, const std::string& named) {
  const auto result = parsed_config(arguments);
  const auto* early = std::get_if<EarlyExit>(&result);
  ASSERT_NE(early, nullptr) << named << " was accepted";
  EXPECT_EQ(early->code, ExitCode::usage);
  EXPECT_NE(early->text.find(named), std::string::npos) << early->text;
}

TEST(CommandLine, nothing_is_needed) {
  const Config config = must_parse({});
  EXPECT_EQ(config.databases.at(0).text, "");
  EXPECT_EQ(config.tasks, "tasks");
  EXPECT_GE(config.concurrency, 1);
  EXPECT_EQ(config.prefetch, std::nullopt);
  EXPECT_EQ(config.max_held_bytes, std::size_t{256} * 1024 * 1024);
  EXPECT_FALSE(config.once);
  EXPECT_FALSE(config.may_gain_privileges);
  EXPECT_FALSE(config.name.empty());
  EXPECT_EQ(config.grace, 25s);
  EXPECT_FALSE(config.heartbeat_interval);
  EXPECT_FALSE(config.http);
  EXPECT_EQ(config.log_format, LogFormat::text);
  EXPECT_EQ(config.log_level, LogLevel::info);
  EXPECT_EQ(config.task_output, TaskOutputUse::log);
  EXPECT_TRUE(config.pass_env.empty());
  EXPECT_EQ(config.env_file, "");
}

TEST(CommandLine, of_what_is_given_twice_the_last_counts) {
  const Config config = must_parse({"--tasks",
                                    "a",
                                    "--tasks",
                                    "b",
                                    "-c",
                                    "1",
                                    "--concurrency",
                                    "2",
                                    "--grace",
                                    "25s",
                                    "--grace",
                                    "10min",
                                    "--name",
                                    "x@host",
                                    "--name",
                                    "mail",
                                    "--http",
                                    "0.0.0.0:9187",
                                    "--http",
                                    "8000",
                                    "--log-format",
                                    "json",
                                    "--log-format",
                                    "text",
                                    "--database",
                                    "one",
                                    "-d",
                                    "two",
                                    "--prefetch",
                                    "0",
                                    "--prefetch",
                                    "9",
                                    "--max-held-bytes",
                                    "1MB",
                                    "--max-held-bytes",
                                    "2MB"});
  EXPECT_EQ(config.tasks, "b");
  EXPECT_EQ(config.concurrency, 2);
  EXPECT_EQ(config.grace, 10min);
  EXPECT_EQ(config.name, "mail");
  EXPECT_EQ(config.http->text(), "127.0.0.1:8000");
  EXPECT_EQ(config.log_format, LogFormat::text);
  EXPECT_EQ(config.databases.size(), 2U);
  EXPECT_EQ(config.prefetch, 9);
  EXPECT_EQ(config.max_held_bytes, std::size_t{2} * 1024 * 1024);
}

TEST(CommandLine, a_database_has_a_name_unless_libpq_has_such_an_option) {
  const Config config = must_parse({"--database", "shop=host=a dbname=shop", "-d", "eu-2=eu", "-d",
                                    "host=b dbname=c", "-d", "postgresql://h/d?user=x", "-d",
                                    "Shop=dbname=e", "-d", "f", "-d", "dbname=g"});
  std::string read;
  for (const DatabaseOption& each : config.databases) read += each.name + '|' + each.text + '\n';
  EXPECT_EQ(read,
            "shop|host=a dbname=shop\neu-2|eu\n|host=b dbname=c\n|postgresql://h/d?user=x\n"
            "|Shop=dbname=e\n|f\n|dbname=g\n");
}

TEST(CommandLine, lists_grow) {
  const Config config = must_parse(
      {"--pass-env", "A", "--pass-env", "B", "C", "--process", "x=cat", "--process", "y=cat"});
  EXPECT_EQ(config.pass_env, (std::vector<std::string>{"A", "B", "C"}));
  EXPECT_EQ(config.processes.size(), 2U);
}

TEST(CommandLine, a_word_that_does_not_count_has_to_be_right_too) {
  expect_usage_error({"--grace", "soon", "--grace", "5s"}, "'soon'");
}

TEST(CommandLine, every_option_arrives) {
  const Config config = must_parse({"--database",
                                    "postgresql://h/db",
                                    "--tasks",
                                    "/srv/tasks",
                                    "--prefetch",
                                    "0",
                                    "--max-held-bytes",
                                    "64MB",
                                    "--concurrency",
                                    "8",
                                    "--once",
                                    "--allow-privileges",
                                    "--name",
                                    "mail-1",
                                    "--grace",
                                    "1min",
                                    "--heartbeat-interval",
                                    "500ms",
                                    "--log-format",
                                    "json",
                                    "--log-level",
                                    "debug",
                                    "--task-output",
                                    "inherit",
                                    "--pass-env",
                                    "RAILS_ENV",
                                    "DATABASE_URL",
                                    "--env-file",
                                    "/etc/app.env",
                                    "--http",
                                    "[::1]:9187",
                                    "--http-name",
                                    "worker",
                                    "--http-name",
                                    "worker.shop.svc"});
  EXPECT_EQ(config.databases.at(0).text, "postgresql://h/db");
  EXPECT_EQ(config.tasks, "/srv/tasks");
  EXPECT_EQ(config.concurrency, 8);
  EXPECT_EQ(config.prefetch, 0);
  EXPECT_EQ(config.max_held_bytes, std::size_t{64} * 1024 * 1024);
  EXPECT_TRUE(config.once);
  EXPECT_TRUE(config.may_gain_privileges);
  EXPECT_EQ(config.name, "mail-1");
  EXPECT_EQ(config.grace, 1min);
  EXPECT_EQ(config.heartbeat_interval, Duration(500));
  EXPECT_EQ(config.task_output, TaskOutputUse::inherit);
  EXPECT_EQ(config.pass_env, (std::vector<std::string>{"RAILS_ENV", "DATABASE_URL"}));
  EXPECT_EQ(config.env_file, "/etc/app.env");
  ASSERT_TRUE(config.http);
  EXPECT_EQ(config.http->text(), "[::1]:9187");
  EXPECT_EQ(config.http_names, (std::vector<std::string>{"worker", "worker.shop.svc"}));
  EXPECT_EQ(config.log_format, LogFormat::json);
  EXPECT_EQ(config.log_level, LogLevel::debug);
}

TEST(CommandLine, bad_usage_names_the_value) {
  expect_usage_error({"--grace", "5"}, "'5' is not a duration such as 500ms, 5s, 1min, 2h or 1d");
  expect_usage_error({"--grace", "-1s"}, "'-1s'");
  expect_usage_error({"--heartbeat-interval", "1ms"}, "'1ms'");
  expect_usage_error({"--http", "localhost:80"}, "'localhost:80'");
  expect_usage_error({"--http", "99999"}, "'99999'");
  expect_usage_error({"--concurrency", "0"}, "0");
  expect_usage_error({"--concurrency", "many"}, "many");
  expect_usage_error({"--prefetch", "-1"}, "-1");
  expect_usage_error({"--prefetch", "some"}, "some");
  expect_usage_error({"--prefetch", "10001"}, "10001");
  for (const std::string bytes : {"0", "-1", "much", "1ZB", "0x10", "010", "2000TB", "1kiloB"}) {
    expect_usage_error({"--max-held-bytes", bytes.c_str()},
                       "--max-held-bytes: '" + bytes + "' is not a size from 1B to 1024TB");
  }
  expect_usage_error({"--log-format", "xml"}, "xml");
  expect_usage_error({"--log-format", "1"}, "1 not in");
  expect_usage_error({"--log-level", "loud"}, "loud");
  expect_usage_error({"--task-output", "stdout"}, "stdout");
  expect_usage_error({"--pass-env", "A=1"}, "'A=1' is not the name of a variable");
  expect_usage_error({"--pass-env", "PULSE_TOKEN"}, "'PULSE_TOKEN' tells tasks of their jobs");
  expect_usage_error({"--name", "\xff"}, "it is not UTF-8");
  expect_usage_error({"--name", ""}, "it has 0 characters, and may have 1 to 512");
  expect_usage_error({"--name", std::string(513, 'x').c_str()}, "it has 513 characters");
  expect_usage_error({"--frobnicate"}, "--frobnicate");
  expect_usage_error({"stray"}, "stray");
  expect_usage_error({"--tasks"}, "--tasks");
}

TEST(CommandLine, numbers_are_decimal) {
  for (const char* option : {"--concurrency", "--prefetch", "--programs"}) {
    for (const std::string text : {"010", "0x10", "0b1", "1e1", "+1", " 1", "1 ", ""}) {
      expect_usage_error(
          {"--program", "cat", option, text.c_str()},
          std::string(option) + ": '" + text + "' is not a whole decimal number from ");
    }
  }
  expect_usage_error({"--concurrency", "10001"}, "'10001' is not a whole decimal number from 1 to");
}

TEST(CommandLine, sizes_have_units) {
  const auto size = [](const char* text) {
    return must_parse({"--max-held-bytes", text}).max_held_bytes;
  };
  EXPECT_EQ(size("1"), 1U);
  EXPECT_EQ(size("7B"), 7U);
  EXPECT_EQ(size("8kB"), 8U << 10U);
  EXPECT_EQ(size("64 mb"), 64U << 20U);
  EXPECT_EQ(size("1GiB"), 1U << 30U);
  EXPECT_EQ(size("1024T"), std::size_t{1} << 50U);
}

TEST(CommandLine, an_option_that_nothing_uses_is_refused) {
  for (const std::vector<const char*>& words :
       std::vector<std::vector<const char*>>{{"--programs", "5"},
                                             {"--start-limit", "5s"},
                                             {"--replace-grace", "5s"},
                                             {"--program-env", "clean"},
                                             {"--crontab-set", "a"},
                                             {"--crontab-set", ""},
                                             {"--crontab-database", "a"},
                                             {"--http-name", "a"}}) {
    expect_usage_error(words, words[0]);
  }
  expect_usage_error({"--crontab", "a", "--crontab-set", ""}, "--crontab-set: a set needs a name");
}

TEST(CommandLine, help_and_version_end_well) {
  for (const char* flag : {"--help", "--version"}) {
    const auto result = parsed_config({flag});
    const auto* early = std::get_if<EarlyExit>(&result);
    ASSERT_NE(early, nullptr);
    EXPECT_EQ(early->code, ExitCode::drained);
    EXPECT_NE(early->text.find("pulse-worker"), std::string::npos);
  }
}

}  // namespace
}  // namespace pulse
