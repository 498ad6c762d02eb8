// The lines of programs: the hello, what is sent, and which job a line is about.
#include "task/program/line.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace pulse {
namespace {

Hello hello_of(const std::string& line) {
  std::string why;
  auto hello = parse_hello(line, why);
  EXPECT_TRUE(hello) << line << ": " << why;
  return hello.value_or(Hello{});
}

std::string refusal_of_line(const std::string& line) {
  std::string why;
  return parse_hello(line, why) ? "accepted" : why;
}

std::string refusal_of_tasks(const std::string& tasks) {
  return refusal_of_line(R"({"hello":{"protocol":1,"tasks":)" + tasks + "}}");
}

TEST(HelloTest, says_how_many_jobs_at_once) {
  const Hello hello = hello_of(
      R"({"hello":{"protocol":1,"takes":100,"name":"shop 3.2",
                   "tasks":{"mail":{"takes":20},"report":{},"all":{"takes":500}}}})");
  EXPECT_EQ(hello.takes, 100);
  EXPECT_EQ(hello.name, "shop 3.2");
  EXPECT_EQ(hello.tasks,
            (std::map<std::string, std::size_t>{{"all", 100}, {"mail", 20}, {"report", 100}}));
}

TEST(HelloTest, takes_one_job_at_a_time_where_it_does_not_say) {
  const Hello hello = hello_of(R"({"hello":{"protocol":1,"tasks":{"mail":{}}}})");
  EXPECT_EQ(hello.takes, 1);
  EXPECT_EQ(hello.tasks.at("mail"), 1);
}

TEST(HelloTest, may_have_members_of_later_protocols) {
  EXPECT_EQ(refusal_of_line(R"({"hello":{"protocol":1,"new":1,"tasks":{"a":{"new":1}}},"new":1})"),
            "accepted");
}

TEST(HelloTest, is_the_first_line) {
  for (const char* line : {"", "x", "[]", "17", R"({"id":"17","result":1})", R"({"hello":1})"}) {
    EXPECT_EQ(refusal_of_line(line), "a line before its hello") << line;
  }
}

TEST(HelloTest, is_of_this_protocol) {
  EXPECT_EQ(refusal_of_line(R"({"hello":{"tasks":{"a":{}}}})"),
            "a hello of protocol none, and this worker speaks protocol 1");
  EXPECT_EQ(refusal_of_line(R"({"hello":{"protocol":"1","tasks":{"a":{}}}})"),
            "a hello of protocol \"1\", and this worker speaks protocol 1");
}

TEST(HelloTest, takes_a_number_of_jobs_that_exists) {
  for (const char* takes : {"0", "-1", "1.5", "\"5\"", "null", "10001", "18446744073709551615"}) {
    const std::string members = std::string(R"("takes":)") + takes;
    EXPECT_EQ(refusal_of_line(R"({"hello":{"protocol":1,"tasks":{"a":{}},)" + members + "}}"),
              "a hello that takes a number of jobs that is not from 1 to 10000");
    EXPECT_EQ(refusal_of_tasks(R"({"a":{)" + members + "}}"),
              "task 'a' of its hello takes a number of jobs that is not from 1 to 10000");
  }
}

TEST(HelloTest, has_tasks_that_can_be_named) {
  EXPECT_EQ(refusal_of_line(R"({"hello":{"protocol":1}})"), "a hello without tasks");
  EXPECT_EQ(refusal_of_tasks("{}"), "a hello without tasks");
  EXPECT_EQ(refusal_of_tasks(R"(["a"])"), "a hello without tasks");
  EXPECT_EQ(refusal_of_tasks(R"({"a":7})"), "task 'a' of its hello has no object of settings");
  EXPECT_EQ(refusal_of_tasks(R"({"":{}})"), "task '' of its hello has no name for a task");
  nlohmann::json many = nlohmann::json::object();
  for (int i = 0; i <= 1000; ++i) many["task-" + std::to_string(i)] = nlohmann::json::object();
  EXPECT_EQ(refusal_of_tasks(many.dump()), "a hello with more than 1000 tasks");
}

TEST(ProgramJobLineTest, has_ids_and_tokens_as_texts_in_one_line) {
  TaskInput input;
  input.job_id = 9007199254740993;
  input.token = 9007199254740995;
  input.identifier = "ma\"il";
  input.payload_json = "{\n\"n\": 1.50}";
  const std::string line = program_job_line(input);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const auto parsed = nlohmann::json::parse(line);
  EXPECT_EQ(parsed["id"], "9007199254740993");
  EXPECT_EQ(parsed["task"], "ma\"il");
  EXPECT_EQ(parsed["job"]["id"], "9007199254740993");
  EXPECT_EQ(parsed["job"]["token"], "9007199254740995");
  EXPECT_NE(line.find(R"("payload":{ "n": 1.50})"), std::string::npos) << line;
}

TEST(ProgramCancelLineTest, names_the_job_as_a_text) {
  std::string line;
  append_program_cancel_line(line, 17, EndReason::timeout, std::chrono::seconds(5));
  EXPECT_EQ(line, R"({"cancel":"17","reason":"timeout","grace_ms":5000})"
                  "\n");
}

TEST(JobOfLineTest, is_read_from_the_beginning_of_a_line) {
  EXPECT_EQ(job_of_line(R"({"id":"17","result":"xxx)"), 17);
  EXPECT_EQ(job_of_line(R"( { "id" : 17 , "result":)"), 17);
  EXPECT_EQ(job_of_line(R"({"id":"17"})"), 17);
  const auto named = job_of_line(R"({"id":"shop:17","result":xxx)");
  ASSERT_TRUE(named);
  EXPECT_EQ(named->text(), "shop:17");
  for (const char* line : {"", R"({"result":1,"id":"17"})", R"({"id":"seventeen"})", R"({"id":)"}) {
    EXPECT_EQ(job_of_line(line), std::nullopt) << line;
  }
}

TEST(JobOfLineTest, is_nobodys_where_the_id_is_no_number) {
  EXPECT_TRUE(names_text_as_job(R"({"id":"seventeen","result":1})"));
  EXPECT_TRUE(names_text_as_job(R"({"id":"123456789012345678901","result":1})"));
  EXPECT_FALSE(names_text_as_job(R"({"id":"17","result":1})"));
  EXPECT_FALSE(names_text_as_job("17"));
  EXPECT_FALSE(names_text_as_job("{}"));
}

}  // namespace
}  // namespace pulse
