// The lines of processes: what is sent, and what is made of what comes.
#include "task/process/line.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace pulse {
namespace {

TaskInput input_of(std::optional<std::string> payload) {
  TaskInput input;
  input.job_id = 17;
  input.token = 99;
  input.identifier = "mail";
  input.payload_json = std::move(payload);
  return input;
}

std::string job_line(const TaskInput& input) {
  std::string line;
  append_job_line(line, input);
  return line;
}

ProcessLine read(const std::string& line) {
  std::string why;
  auto parsed = parse_process_line(line, why);
  EXPECT_TRUE(parsed) << line << ": " << why;
  return parsed.value_or(ProcessLine{});
}

std::string refusal_of(const std::string& line) {
  std::string why;
  return parse_process_line(line, why) ? "accepted" : why;
}

TEST(JobLineTest, is_the_document_of_executables_with_the_id_in_front) {
  const TaskInput input = input_of(R"({"n": 1.50})");
  const std::string line = job_line(input);
  EXPECT_TRUE(line.starts_with(R"({"id":17,"id_text":"17","payload":{"n": 1.50},"job":{"id":17,)"));
  auto parsed = nlohmann::json::parse(line);
  parsed.erase("id");
  parsed.erase("id_text");
  EXPECT_EQ(parsed, nlohmann::json::parse(task_stdin(input)));
}

TEST(JobLineTest, is_one_line_whatever_stands_in_it) {
  TaskInput input = input_of("{\r\n  \"text\": \"a\\nb\"\n}");
  input.checkpoint_json = "[1,\n2]";
  input.last_error = "first\nsecond";
  input.flags = {"a\"b", "c"};
  const std::string line = job_line(input);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  EXPECT_EQ(line.find('\r'), std::string::npos);
  const auto parsed = nlohmann::json::parse(line);
  EXPECT_EQ(parsed["payload"]["text"], "a\nb");
  EXPECT_EQ(parsed["job"]["checkpoint"], nlohmann::json({1, 2}));
  EXPECT_EQ(parsed["job"]["last_error"], "first\nsecond");
  EXPECT_EQ(parsed["job"]["flags"], nlohmann::json({"a\"b", "c"}));
}

TEST(JobLineTest, follows_what_stands_before) {
  std::string text = "first\n";
  append_job_line(text, input_of(std::nullopt));
  EXPECT_TRUE(text.starts_with("first\n{\"id\":17,\"id_text\":\"17\",\"payload\":null,"));
}

TEST(CancelLineTest, names_the_job_why_and_how_long) {
  std::string text;
  append_cancel_line(text, 17, EndReason::timeout, std::chrono::seconds(5));
  EXPECT_EQ(text, R"({"cancel":17,"id_text":"17","reason":"timeout","grace_ms":5000})"
                  "\n");
}

TEST(ProcessLineTest, an_id_may_be_text) {
  EXPECT_EQ(read(R"({"id":"9007199254740995","result":1})").job_id, 9007199254740995);
  for (const char* id : {R"("")", R"("x")", R"("17 ")", R"("1.5")", R"("99999999999999999999")"}) {
    EXPECT_EQ(refusal_of(std::string(R"({"id":)") + id + R"(,"result":1})"),
              "a line without the id of a job");
  }
}

TEST(ProcessLineTest, what_is_left_stands_beside_an_error_or_alone) {
  const ProcessLine line = read(R"({"id":17,"error":"2 of 3 refused","payload":[2, 1.50]})");
  EXPECT_EQ(line.end->kind, ExecutionEnd::Kind::failed);
  EXPECT_EQ(line.payload, "[2, 1.50]");
  const ProcessLine alone = read(R"({"id":17,"payload":{"from":4}})");
  EXPECT_FALSE(alone.end);
  EXPECT_EQ(alone.payload, R"({"from":4})");
  EXPECT_FALSE(read(R"({"id":17,"error":"none done","payload":null})").payload);
}

TEST(ProcessLineTest, a_result_completes) {
  const ProcessLine line = read(R"({"id": 17, "result": {"n": 1.50, "s": "}\"]"}})");
  EXPECT_EQ(line.job_id, 17);
  EXPECT_EQ(line.end->kind, ExecutionEnd::Kind::succeeded);
  EXPECT_EQ(line.end->result, R"({"n": 1.50, "s": "}\"]"})");
  EXPECT_TRUE(line.end->is_answer);
}

TEST(ProcessLineTest, a_result_of_null_is_none) {
  const ProcessLine line = read(R"({"result":null,"id":17})");
  EXPECT_EQ(line.end->kind, ExecutionEnd::Kind::succeeded);
  EXPECT_EQ(line.end->result, std::nullopt);
}

TEST(ProcessLineTest, an_error_fails_with_its_text) {
  const ProcessLine line = read(R"({"id":17,"error":"no \u0000 page\n"})");
  EXPECT_EQ(line.end->kind, ExecutionEnd::Kind::failed);
  EXPECT_EQ(line.end->error, "no \xEF\xBF\xBD page");
  EXPECT_EQ(read(R"({"id":17,"error":"x","retry":true})").end->kind, ExecutionEnd::Kind::failed);
  EXPECT_EQ(read(R"({"id":17,"error":"x","retry":false})").end->kind,
            ExecutionEnd::Kind::failed_for_good);
  EXPECT_EQ(read(R"({"id":17,"error":"x","retry_in":1.5})").end->again_in,
            std::chrono::milliseconds(1500));
}

TEST(ProcessLineTest, a_result_is_any_json_that_the_server_takes) {
  for (const char* result : {"1e400", R"("a\u0000b")", R"(["\ud800"])"})
    EXPECT_EQ(read(std::string(R"({"id":17,"result":)") + result + '}').end->result, result);
  EXPECT_EQ(read(R"({"id":17,"error":"\ud800"})").end->error, R"("\ud800")")
      << "which says nothing";
}

TEST(ProcessLineTest, the_range_of_a_snooze_is_told) {
  EXPECT_EQ(read(R"({"id":17,"snooze":1e9})").end->again_in, std::chrono::seconds(1'000'000'000));
  EXPECT_EQ(refusal_of(R"({"id":17,"snooze":3153600000})"),
            "a snooze that is not from 0 to 1000000000 seconds");
}

TEST(ProcessLineTest, a_snooze_keeps_its_checkpoint) {
  const ProcessLine line = read(R"({"id":17,"snooze":60,"checkpoint":[1, 2]})");
  EXPECT_EQ(line.end->kind, ExecutionEnd::Kind::snoozed);
  EXPECT_EQ(line.end->again_in, std::chrono::seconds(60));
  EXPECT_EQ(line.end->checkpoint, "[1, 2]");
  EXPECT_TRUE(line.progress.empty());
}

TEST(ProcessLineTest, anything_else_is_progress) {
  const ProcessLine line =
      read(R"({"id":17,"progress":0.5,"message":"half","stage":"b","checkpoint":{"at":3}})");
  EXPECT_FALSE(line.end);
  EXPECT_EQ(line.progress.fraction, 0.5);
  EXPECT_EQ(line.progress.message, "half");
  EXPECT_EQ(line.progress.stage, "b");
  EXPECT_EQ(line.progress.checkpoint, R"({"at":3})");
}

TEST(ProcessLineTest, an_answer_may_carry_the_last_checkpoint) {
  const ProcessLine line = read(R"({"id":17,"error":"later","checkpoint":7})");
  EXPECT_EQ(line.progress.checkpoint, "7");
  EXPECT_EQ(line.end->kind, ExecutionEnd::Kind::failed);
}

TEST(ProcessLineTest, a_hello_says_how_many_jobs_it_takes) {
  EXPECT_EQ(read(R"({"takes": 100})").takes, 100);
  for (const char* number : {"0", "-1", "10001", "1.5", "\"9\"", "null", "[]", "1e2"}) {
    EXPECT_NE(refusal_of(std::string("{\"takes\":") + number + "}"), "accepted") << number;
  }
}

TEST(ProcessLineTest, what_is_within_values_means_nothing) {
  const ProcessLine line =
      read(R"({"other":{"id":1,"error":"x"},"id":17,"result":{"id":3,"snooze":1,"takes":5}})");
  EXPECT_EQ(line.job_id, 17);
  EXPECT_EQ(line.end->kind, ExecutionEnd::Kind::succeeded);
}

TEST(ProcessLineTest, what_means_nothing_is_refused) {
  const std::string nested(501, '[');
  for (const std::string& line : {std::string("hello"),
                                  std::string("[]"),
                                  std::string("17"),
                                  std::string("{}"),
                                  std::string(R"({"result":1})"),
                                  std::string(R"({"id":["17"],"result":1})"),
                                  std::string(R"({"id":1.5,"result":1})"),
                                  std::string(R"({"id":99999999999999999999})"),
                                  std::string(R"({"id":17,"result":1,"error":"x"})"),
                                  std::string(R"({"id":17,"snooze":1,"error":"x"})"),
                                  std::string(R"({"id":17,"error":5})"),
                                  std::string(R"({"id":17,"error":"x","retry":1})"),
                                  std::string(R"({"id":17,"error":"x","retry_in":-1})"),
                                  std::string(R"({"id":17,"snooze":"1"})"),
                                  std::string(R"({"id":17,"snooze":1e10})"),
                                  std::string(R"({"id":17,"progress":2})"),
                                  std::string(R"({"id":17,"result":1)"),
                                  std::string(R"({"id":17,"result":1}{)"),
                                  std::string("{\"id\":17,\"result\":\"\0\"}", 22),
                                  std::string("{\"id\":17,\"result\":\"\xFF\"}"),
                                  R"({"id":17,"result":)" + nested + std::string(501, ']') + "}"}) {
    EXPECT_NE(refusal_of(line), "accepted") << line;
  }
}

TEST(ProcessLineTest, stray_output_is_told_from_a_broken_answer) {
  EXPECT_TRUE(may_mean_answer(" {\"id\""));
  EXPECT_FALSE(may_mean_answer("warning: {old}"));
  EXPECT_FALSE(may_mean_answer(""));
}

}  // namespace
}  // namespace pulse
