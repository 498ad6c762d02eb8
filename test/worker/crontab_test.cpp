// The crontab file: Graphile Worker's grammar, and what it means to the server.
#include "crontab/crontab.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "crontab/json5.hpp"
#include "worker_bench.hpp"

namespace pulse {
namespace {

std::string items_of(std::string_view text) {
  const auto parsed = parse_crontab(text);
  const auto* items = std::get_if<CrontabItems>(&parsed);
  return items == nullptr ? std::get<std::string>(parsed) : items->json;
}

// The rule that the server gets for these five fields.
std::string cron_of(const std::string& fields) {
  const std::string items = items_of(fields + " task");
  const std::string key = "\"cron\":\"";
  const std::size_t begin = items.find(key);
  if (begin == std::string::npos) return items;
  return items.substr(begin + key.size(), items.find('"', begin + key.size()) - begin - key.size());
}

std::string json_of(std::string_view json5) {
  const auto read = json_of_json5(json5);
  const auto* json = std::get_if<JsonText>(&read);
  return json == nullptr ? "refused" : json->text;
}

TEST(Crontab, an_item_is_a_rule_and_a_task) {
  EXPECT_EQ(items_of("\n# comment\n  0 4 * * * backup\r\n"),
            R"([{"identifier":"backup","cron":"0 4 * * *","name":"backup"}])");
  EXPECT_EQ(items_of(""), "[]");
  EXPECT_EQ(items_of("\ufeff# with a byte order mark"), "[]");
  EXPECT_EQ(items_of("* * * * * a:b/c-D_1"),
            R"([{"identifier":"a:b/c-D_1","cron":"* * * * *","name":"a:b/c-D_1"}])");
}

TEST(Crontab, options_and_payload_stand_behind_the_task) {
  EXPECT_EQ(items_of("* * * * * t ?id=x&fill=4w3d2h1m5s&max=3&queue=a%2Fb+c&jobKey=k&"
                     "jobKeyMode=preserve_run_at&priority=-2 {a: 'b'}"),
            R"([{"identifier":"t","cron":"* * * * *","name":"x",)"
            R"("fill":"4 weeks 3 days 2 hours 1 minutes 5 seconds","max_attempts":3,)"
            R"("queue_name":"a/b c","job_key":"k","job_key_mode":"preserve_run_at","priority":-2,)"
            R"("payload":{"a":"b"}}])");
  EXPECT_EQ(items_of("* * * * * t {}"),
            R"([{"identifier":"t","cron":"* * * * *","payload":{},"name":"t"}])");
}

TEST(Crontab, a_rule_is_left_as_it_is_written) {
  EXPECT_EQ(cron_of("*/5 1,3-5 1 1-6 1-5"), "*/5 1,3-5 1 1-6 1-5");
  EXPECT_EQ(cron_of("0-59 0-23 1-31 1-12 0-6"), "* * * * *");
}

TEST(Crontab, a_day_field_with_a_star_restricts_as_a_list_does) {
  EXPECT_EQ(cron_of("0 0 */10 * 1"), "0 0 1,11,21,31 * 1");
  EXPECT_EQ(cron_of("0 0 1 * */3"), "0 0 1 * 0,3,6");
  EXPECT_EQ(cron_of("0 0 */1 * 1-7"), "0 0 * * *");
  EXPECT_EQ(cron_of("0 0 5,* * 1"), "0 0 * * 1");
}

TEST(Crontab, a_mistake_is_named_by_its_line) {
  EXPECT_EQ(items_of("* * * * * a\n60 * * * * b"),
            "line 2 has the minute '60'; use numbers from 0 to 59, *, */n, a-b, and lists of them");
  for (const char* field : {"5-3", "3-3", "1,", ",1", "*/0", "-1", "1-", "a", "**", "1/2", "mon"}) {
    EXPECT_TRUE(items_of(std::string(field) + " * * * * a").starts_with("line 1 has the minute"))
        << field;
  }
  EXPECT_TRUE(items_of("* * 0 * * a").starts_with("line 1 has the day '0'"));
  EXPECT_TRUE(items_of("* * * 13 * a").starts_with("line 1 has the month '13'"));
  EXPECT_TRUE(items_of("* * * * 8 a").starts_with("line 1 has the weekday '8'"));
  EXPECT_TRUE(items_of("* * * *").starts_with("line 1 has the weekday ''"));
  EXPECT_EQ(items_of("* * * * * 1a"), "line 1 names the task '1a', which is no name of a task");
  EXPECT_EQ(items_of("* * * * * a ?foo=1"), "line 1 has the unknown option 'foo'");
  EXPECT_EQ(items_of("* * * * * a ?max=1&max=2"), "line 1 has the option 'max' twice");
  EXPECT_EQ(items_of("* * * * * a ?max=x"),
            "line 1 has the option 'max' of 'x', which is no number");
  EXPECT_EQ(items_of("* * * * * a ?fill=5"),
            "line 1 has the option 'fill' of '5', which is no time such as 4w3d2h1m");
  EXPECT_EQ(items_of("* * * * * a ?queue=%zz"), "line 1 has the option 'queue' of '%zz'");
  EXPECT_EQ(items_of("* * * * * a ?queue=%ff"), "line 1 has the option 'queue' of '%ff'");
  EXPECT_EQ(items_of("* * * * * a b"),
            "line 1 has 'b' behind the task; options begin with ?, a payload with {");
  EXPECT_EQ(items_of("* * * * * a {a: }"),
            "line 1 has a payload that is no JSON5 from character 5 on");
  EXPECT_EQ(items_of("* * * * * a\n* * * * * a"),
            "line 2 names 'a', as a line above; give it a name by ?id=");
}

TEST(Crontab, only_its_owner_may_write_the_file) {
  std::string path = std::filesystem::temp_directory_path() / "pulse-crontab-XXXXXX";
  close(mkstemp(path.data()));
  std::ofstream(path) << "* * * * * a\n";
  EXPECT_EQ(std::get<CrontabItems>(read_crontab(path)).count, 1);
  std::ofstream(path) << "nonsense\n";
  EXPECT_TRUE(std::get<FileRefusal>(read_crontab(path)).reason.starts_with(path + ": line 1 has"));
  chmod(path.c_str(), 0666);
  EXPECT_EQ(std::get<FileRefusal>(read_crontab(path)).reason,
            path + " may be written by everybody; take it away with chmod go-w");
  std::filesystem::remove(path);
  EXPECT_EQ(std::get<FileRefusal>(read_crontab(path)).reason,
            "cannot read " + path + ": No such file or directory");
}

TEST(Json5, becomes_json) {
  EXPECT_EQ(json_of(" {a: 1, 'b': \"c\", $d_1: [true, null, false,],} "),
            R"({"a":1,"b":"c","$d_1":[true,null,false]})");
  EXPECT_EQ(json_of("[+1, -1, .5, -.5e2, 5., 0, 1E-3, 0x1f]"), "[1,-1,0.5,-0.5e2,5,0,1e-3,31]");
  EXPECT_EQ(json_of("// a\n/* b */ 'it\\'s \"so\"' // c"), R"("it's \"so\"")");
  EXPECT_EQ(json_of(R"('\x41\u00e9\ud83d\ude00\ud83d\0\v\q')"),
            "\"A\u00e9\U0001F600\uFFFD\\u0000\\u000bq\"");
  EXPECT_EQ(json_of("'a\\\nb'"), R"("ab")");
}

TEST(Json5, blanks_that_look_like_a_space_are_blanks) {
  EXPECT_EQ(json_of("{\u00a0a\u2003:\u30001\ufeff,\u00a0b: true\u00a0, c: 0x1f\u2028}"),
            R"({"a":1,"b":true,"c":31})");
  EXPECT_EQ(json_of("{\u00e9: '\u00a0'}"), "{\"\u00e9\":\"\u00a0\"}");
}

TEST(Json5, what_it_is_not_is_refused) {
  for (const char* text : {"",      "{",      "{a}",   "{a:1 b:2}", "{1:2}",    "[1 2]", "[,]",
                           "'a",    "'a\nb'", "'\\1'", "'\\x4'",    "01",       "0x",    "1e",
                           ".",     "+",      "--1",   "1a",        "truely",   "NaN",   "Infinity",
                           "1e999", "/* a",   "1 2",   "{a:1}}",    "undefined"}) {
    EXPECT_EQ(json_of(text), "refused") << text;
  }
  EXPECT_EQ(json_of(std::string(200, '[') + std::string(200, ']')), "refused");
}

class CrontabLoaderTest : public WorkerBench {
 protected:
  void given_loading_worker(bool once = false) {
    config_.crontab_set = "app";
    given_unregistered_worker(1, once);
    worker_->load_crontab({"[1]", 1});
    heartbeat_.accept();
    claim_.accept();
    turn();
    open_finish();
    EXPECT_EQ(finish_.running(), "") << "before the worker is registered";
    heartbeat_.answer(registered(kWorkerId, sweep_interval_));
    turn();
    open_finish();
    ASSERT_EQ(finish_.running(), "load_crontab");
  }
  void open_finish() {
    if (finish_.is_opening()) finish_.accept(finish_pid());
    turn();
  }
  void answer_loaded() {
    finish_.answer(QueryResult({"name", "change"}, {"a", "added", "b", "unchanged"}));
    turn();
  }
  // Ends the log.
  void expect_log(const std::vector<std::string>& parts, const std::string& absent) {
    const std::string log = capture_.text();
    for (const std::string& part : parts) EXPECT_NE(log.find(part), std::string::npos) << part;
    EXPECT_EQ(log.find(absent), std::string::npos) << absent;
  }
};

TEST_F(CrontabLoaderTest, a_registered_worker_loads_its_file) {
  given_loading_worker();
  EXPECT_EQ(finish_.params()[0], "app");
  EXPECT_EQ(finish_.params()[1], "[1]");
  answer_loaded();
  EXPECT_EQ(finish_.running(), "");
  expect_log(
      {"schedule_loaded schedule=a change=added", "crontab_loaded set=app items=1 changed=1"},
      "schedule=b");
}

TEST_F(CrontabLoaderTest, what_the_file_says_later_is_loaded_once_there_is_an_answer) {
  given_loading_worker();
  worker_->load_crontab({"[2]", 1});
  worker_->load_crontab({"[]", 0});
  turn();
  EXPECT_EQ(finish_.params()[1], "[1]");
  answer_loaded();
  ASSERT_EQ(finish_.running(), "load_crontab");
  EXPECT_EQ(finish_.params()[1], "[]");
  answer_loaded();
  EXPECT_EQ(finish_.running(), "");
}

TEST_F(CrontabLoaderTest, a_refusal_at_the_start_ends_the_worker) {
  given_loading_worker();
  finish_.refuse_statement("42501", "permission denied for function load_crontab");
  turn();
  expect_log({"may not load schedules", "SELECT pulse.grant_scheduler(", "exit_code=78"},
             "crontab_loaded");
}

TEST_F(CrontabLoaderTest, a_refusal_later_leaves_the_worker_at_work) {
  given_loading_worker();
  answer_loaded();
  worker_->load_crontab({"[2]", 1});
  turn();
  finish_.refuse_statement("PU004", "cron rule is never due");
  turn();
  expect_log({"crontab_failed set=app sqlstate=PU004"}, "exit_code");
}

TEST_F(CrontabLoaderTest, what_passes_is_tried_again) {
  given_loading_worker();
  finish_.refuse_statement("40P01", "deadlock detected");
  turn();
  EXPECT_EQ(finish_.running(), "");
  pass_time(5s);
  ASSERT_EQ(finish_.running(), "load_crontab");
  finish_.lose();
  turn();
  open_finish();
  EXPECT_EQ(finish_.running(), "");
  pass_time(5s);
  EXPECT_EQ(finish_.running(), "load_crontab");
}

TEST_F(CrontabLoaderTest, a_worker_that_runs_once_loads_its_file_before_it_goes) {
  given_loading_worker(/*once=*/true);
  heartbeat_.answer(done());
  turn();
  heartbeat_.answer(handler_tasks());
  turn();
  ASSERT_EQ(claim_.running(), "claim");
  claim_.answer(claimed({}));
  turn();
  EXPECT_NE(heartbeat_.running(), "deregister_worker");
  answer_loaded();
  EXPECT_EQ(heartbeat_.running(), "deregister_worker");
}

}  // namespace
}  // namespace pulse
