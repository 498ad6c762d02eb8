// What is written as JSON, and what may be stored as a document.
#include "base/text/json_text.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <clocale>
#include <cstdlib>
#include <filesystem>

#include "base/text/json_grammar.hpp"
#include "jobs/outcome_statement.hpp"
#include "pulse/worker.hpp"
#include "task/handler/run.hpp"

namespace pulse {
namespace {

TEST(Document, what_is_no_json_is_not_stored) {
  EXPECT_FALSE(document_problem(R"({"a":[1,2.50,null,"\u0000"]})"));
  EXPECT_TRUE(document_problem(""));
  EXPECT_TRUE(document_problem("{\"a\":1}x"));
  EXPECT_TRUE(document_problem(std::string("\"a\0b\"", 5)));
  EXPECT_TRUE(document_problem(std::string("1\0", 2)));
  EXPECT_TRUE(document_problem("\"\xff\""));
}

TEST(Document, what_the_server_takes_is_taken) {
  for (const char* text : {"1e400", "-0.5E-400", "0", "[1e99999, -0]", R"("\u0000")", R"("\ud800")",
                           "\"\xf0\x9f\x90\x98\"",
                           " { \"a\" : [ { } , [ ] , true , false , null , \"\\\"\\n\" ] , "
                           "\"b\":{\"c\":1.0e+2} }\n"}) {
    EXPECT_TRUE(is_json(text)) << text;
  }
  for (const char* text : {"",        " ",           "{",
                           "[",       "[1",          "[1,",
                           "[1,]",    "[,1]",        "{,}",
                           "{\"a\"}", "{\"a\":}",    "{\"a\":1,}",
                           "{1:1}",   "[1}",         "{\"a\":1]",
                           "]",       "01",          "+1",
                           "1.",      ".5",          "1e",
                           "-",       "1 2",         "nul",
                           "truex",   R"("\u00g0")", R"("\u00)",
                           R"("\x")", "\"\t\"",      "\"a",
                           "'a'",     "NaN",         "\"\xed\xa0\x80\"",
                           R"("\1)",  R"("\u00zz1)", R"({"a":"\1})"}) {
    EXPECT_FALSE(is_json(text)) << text;
  }
  EXPECT_TRUE(is_json(std::string(100'000, '[') + std::string(100'000, ']'))) << "as deep as it is";
}

TEST(Document, its_length_is_bounded) {
  EXPECT_FALSE(document_problem('"' + std::string(kMaxDocumentBytes - 2, 'x') + '"'));
  EXPECT_TRUE(document_problem('"' + std::string(kMaxDocumentBytes - 1, 'x') + '"'));
}

TEST(Document, a_handler_reports_only_what_can_be_stored) {
  const auto outbox = std::make_shared<HandlerOutbox>([] {});
  const auto run = std::make_shared<HandlerRun>(TaskInput{}, outbox);
  const pg_pulse::Job job(run);
  EXPECT_THROW(job.report({.checkpoint = std::string("1\0", 2)}), std::invalid_argument);
  EXPECT_TRUE(run->take_progress().empty());
  job.report({.message = std::string(10'000, 'x'),
              .stage = std::string("a\0\xff", 3) + std::string(200, 'y'),
              .checkpoint = "1"});
  const TaskProgress progress = run->take_progress();
  EXPECT_EQ(progress.message, std::string(8 * 1024, 'x'));
  EXPECT_EQ(progress.stage, "a\uFFFD\uFFFD" + std::string(128 - 7, 'y'));
  EXPECT_EQ(progress.checkpoint, "1");
  outbox->close();
}

// A locale of this machine whose decimal sign is a comma, for as long as this lives.
class Comma {
 public:
  Comma() {
    place_ = std::filesystem::temp_directory_path() / ("pulse-locale-" + std::to_string(getpid()));
    std::filesystem::create_directory(place_);
    const std::string command =
        "localedef -i de_DE -f UTF-8 '" + (place_ / "de_DE.UTF-8").string() + "' >/dev/null 2>&1";
    if (std::system(command.c_str()) != 0) return;
    setenv("LOCPATH", place_.c_str(), 1);
    is_set_ = std::setlocale(LC_ALL, "de_DE.UTF-8") != nullptr;
  }
  ~Comma() {
    std::setlocale(LC_ALL, "C");
    unsetenv("LOCPATH");
    std::filesystem::remove_all(place_);
  }
  bool is_set() const { return is_set_; }

 private:
  std::filesystem::path place_;
  bool is_set_ = false;
};

TEST(Document, a_fraction_is_a_number_in_every_locale) {
  const Comma comma;
  if (!comma.is_set()) GTEST_SKIP() << "no locale with a comma can be made here";
  ASSERT_EQ(std::to_string(0.5).at(1), ',');
  TaskProgress progress;
  progress.fraction = 0.4;
  EXPECT_EQ(progress_params({1, 2}, progress).at(3), "0.400000");
}

}  // namespace
}  // namespace pulse
