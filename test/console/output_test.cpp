// Tables, JSON, spelling and widths, as people and scripts read them.
#include <gtest/gtest.h>

#include "job/job_filter.hpp"
#include "job/state_counts.hpp"
#include "output/partial_count.hpp"
#include "output/record.hpp"
#include "output/table.hpp"
#include "text/laid_out_json.hpp"
#include "text/spelling.hpp"
#include "text/width.hpp"

namespace pulse::console {
namespace {

const Columns kColumns{{"job", "id", Kind::id},
                       {"task", "task", Kind::text, 10},
                       {"took", "took", Kind::seconds},
                       {"", "secret"},
                       {"empty", "empty"}};

QueryResult two_rows() {
  return {{"id", "task", "took", "secret", "empty"},
          {"9007199254740993", "mail", "0.25", "s", std::nullopt,  //
           "7", "a long name of a task", "7384", std::nullopt, std::nullopt}};
}

TEST(StateCount, SaysWhereItStopped) {
  EXPECT_EQ((StateCount{"due", 999, true}).text(), "999");
  EXPECT_EQ((StateCount{"due", 5'000'000, true}).text(), "5,000,000");
  EXPECT_EQ((StateCount{"due", 300'000, false}).text(), "1,000+");
  EXPECT_EQ((StateCount{"failed", 7, false}).text(), "7+");
}

TEST(PartialCount, HasAPlusWhereTheServerNamesOneOfTheFields) {
  const QueryResult overview{{"ready", "parked_full", "parked_paused", "running", "estimated"},
                             {"1200", "900", "150", std::nullopt, R"(["ready","parked_paused"])"}};
  EXPECT_EQ(sum_of(overview[0], {"ready"}).text(), "1,200+");
  EXPECT_EQ(sum_of(overview[0], {"parked_full"}).text(), "900");
  EXPECT_EQ(sum_of(overview[0], {"parked_full", "parked_paused"}).text(), "1,050+");
  EXPECT_EQ(sum_of(overview[0], {"running"}).text(), "0");
}

TEST(Shown, HasAPlusBehindACountOfWhichTheServerSawAPart) {
  const QueryResult depths{{"ready", "parked", "plus", "estimated"},
                           {"1000", "7", "+", R"(["parked"])",  //
                            "1000", std::nullopt, "", "[]"}};
  Column ready{"ready", "ready", Kind::count};
  ready.plus_field = "plus";
  Column parked{"parked", "parked", Kind::count};
  EXPECT_EQ(shown(parked, depths[0]), "7");
  parked.plus_field = "estimated";
  EXPECT_EQ(shown(ready, depths[0]), "1,000+");
  EXPECT_EQ(shown(parked, depths[0]), "7+");
  EXPECT_EQ(shown(ready, depths[1]), "1,000");
  EXPECT_EQ(shown(parked, depths[1]), "");
  EXPECT_NE(table({ready, parked}, depths, {}).find("1,000+"), std::string::npos);
  EXPECT_NE(record({ready, parked}, depths[0], {}).find("7+"), std::string::npos);
}

TEST(Sentence, BeginsWithACapitalAndEndsWithAStop) {
  EXPECT_EQ(sentence("only a part"), "Only a part.");
  EXPECT_EQ(sentence(""), "");
}

TEST(LaidOutJson, PutsEachMemberOnALine) {
  EXPECT_EQ(laid_out_json(R"({"a": [1, {"b":[] }],"c":{}, "d": "x, {y}: [\\\"" })"),
            "{\n  \"a\": [\n    1,\n    {\n      \"b\": []\n    }\n  ],\n"
            "  \"c\": {},\n  \"d\": \"x, {y}: [\\\\\\\"\"\n}");
}

TEST(LaidOutJson, KeepsEachDigitAndWhatIsCutOff) {
  EXPECT_EQ(laid_out_json(" 12345678901234567890.10 "), "12345678901234567890.10");
  EXPECT_EQ(laid_out_json("[1, \"a\\"), "[\n  1,\n  \"a\\");
  EXPECT_EQ(laid_out_json("]}"), "\n]\n}");
}

TEST(LaidOutJson, IndentsNoEndlessDepth) {
  EXPECT_LT(laid_out_json(std::string(10000, '[')).size(), 10000U * 140);
}

TEST(Table, AlignsAndLeavesOutWhatIsEmpty) {
  EXPECT_EQ(table(kColumns, two_rows(), Style()),
            "             job  task             took\n"
            "9007199254740993  mail           250 ms\n"
            "               7  a long na…  2 h 3 min\n");
}

TEST(Table, CutsTextsWhereTheTerminalIsNarrow) {
  Style style;
  style.columns = 37;
  EXPECT_EQ(table(kColumns, two_rows(), style),
            "             job  task           took\n"
            "9007199254740993  mail         250 ms\n"
            "               7  a long …  2 h 3 min\n");
}

TEST(Table, HasColoursOnlyWhereTheyAreWanted) {
  const Columns states{{"state", "state", Kind::state}};
  const QueryResult rows{{"state"}, {"failed"}};
  Style style;
  EXPECT_EQ(table(states, rows, style), "state\nfailed\n");
  style.has_colours = true;
  EXPECT_EQ(table(states, rows, style), "\033[1mstate\033[0m\n\033[31mfailed\033[0m\n");
}

TEST(Json, HasIdsAsStringsAndElapsedTimeAsSeconds) {
  EXPECT_EQ(json_list(kColumns, two_rows()),
            "[\n {\"id\": \"9007199254740993\", \"task\": \"mail\", \"took\": 0.25, "
            "\"secret\": \"s\", \"empty\": null},\n"
            " {\"id\": \"7\", \"task\": \"a long name of a task\", \"took\": 7384, "
            "\"secret\": null, \"empty\": null}\n]\n");
  EXPECT_EQ(json_list(kColumns, QueryResult()), "[]\n");
}

TEST(Spelling, OfElapsedTime) {
  EXPECT_EQ(spell_known_seconds("?"), "?");
  EXPECT_EQ(spell_known_seconds("7500.4"), "2 h 5 min");
  EXPECT_EQ(spell_seconds(0), "0 ms");
  EXPECT_EQ(spell_seconds(0.9994), "999 ms");
  EXPECT_EQ(spell_seconds(0.9996), "1.0 s");
  EXPECT_EQ(spell_seconds(9.96), "10 s");
  EXPECT_EQ(spell_seconds(59.4), "59 s");
  EXPECT_EQ(spell_seconds(60), "1 min");
  EXPECT_EQ(spell_seconds(192), "3 min 12 s");
  EXPECT_EQ(spell_seconds(7500), "2 h 5 min");
  EXPECT_EQ(spell_seconds(90'000), "1 d 1 h");
  EXPECT_EQ(spell_seconds(-90), "-1 min 30 s");
}

TEST(Spelling, OfCountsAndTimes) {
  EXPECT_EQ(spell_count("1234567"), "1,234,567");
  EXPECT_EQ(spell_count("-123"), "-123");
  EXPECT_EQ(spell_count("1500+"), "1,500+");
  EXPECT_EQ(plural(1, "job"), "1 job");
  EXPECT_EQ(plural(2000, "job"), "2,000 jobs");
  EXPECT_EQ(spell_time("2026-11-24 23:05:59.123456+00"), "2026-11-24 23:05:59");
  EXPECT_EQ(spell_time("infinity"), "infinity");
  EXPECT_EQ(rfc3339("2026-11-24 23:05:59.5+00"), "2026-11-24T23:05:59.5+00:00");
  EXPECT_EQ(rfc3339("2026-11-24 23:05:59-03:30"), "2026-11-24T23:05:59-03:30");
}

TEST(Spelling, OfProgress) {
  EXPECT_EQ(progress_bar(0, 12), "[----------]");
  EXPECT_EQ(progress_bar(0.55, 12), "[#####-----]");
  EXPECT_EQ(progress_bar(7, 12), "[##########]");
}

TEST(Width, CutsByColumnsAndNotWithinACharacter) {
  EXPECT_EQ(fit("abcdef", 4), "abc…");
  EXPECT_EQ(fit("abcd", 4), "abcd");
  EXPECT_EQ(pad("ab", 4), "ab  ");
  EXPECT_EQ(pad_before("ab", 4), "  ab");
}

TEST(Filter, TakesDurationsWithAUnit) {
  EXPECT_EQ(interval_of("90s"), "90000 milliseconds");
  EXPECT_EQ(interval_of("3d"), "3 days");
  for (const char* text : {"", "3", "d", "-1d", "1.5d", "1 h", "99999999999d"}) {
    EXPECT_EQ(interval_of(text), std::nullopt) << text;
  }
}

TEST(Filter, IsTheParametersOfItsConditions) {
  JobFilter filter;
  EXPECT_TRUE(filter.is_empty());
  filter.states = {"failed", "a\"b"};
  filter.error = "%";
  EXPECT_FALSE(filter.is_empty());
  const Params params = filter.params();
  EXPECT_EQ(params[0], "{\"failed\",\"a\\\"b\"}");
  EXPECT_EQ(params[1], std::nullopt);
  EXPECT_EQ(params[4], "%");
}

}  // namespace
}  // namespace pulse::console
