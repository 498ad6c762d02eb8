// Whatever programs have written, it stands on a page as a text; charts and graphs are drawn where
// their values say.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <regex>
#include <thread>

#include "hostile_texts.hpp"
#include "html/chart.hpp"
#include "html/flow_graph.hpp"
#include "html/moment.hpp"
#include "html/timeline.hpp"
#include "html/value.hpp"
#include "pages/list_page.hpp"

namespace pulse::console {
namespace {

// What a browser takes for a tag or a quote, in the order in which it stands there.
std::string acted_on(const std::string& html) {
  std::string found;
  for (const char letter : html) {
    if (letter == '<' || letter == '>' || letter == '"' || letter == '\'') found += letter;
  }
  return found;
}

bool is_entity(std::string_view text) {
  for (const std::string_view entity : {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"}) {
    if (text.starts_with(entity)) return true;
  }
  return false;
}

// Of a text that was escaped.
std::string html_problem(const std::string& html) {
  for (std::size_t i = 0; i < html.size(); ++i) {
    const auto byte = static_cast<unsigned char>(html[i]);
    if (std::string_view("<>\"'").find(html[i]) != std::string_view::npos)
      return "a tag or a quote";
    if (html[i] == '&' && !is_entity(std::string_view(html).substr(i))) return "an ampersand";
    if ((byte < 0x20 && html[i] != '\n') || byte == 0x7F) return "a control character";
  }
  return {};
}

TEST(Html, EscapesEachHostileText) {
  for (const std::string& text : hostile_texts()) {
    EXPECT_EQ(html_problem(Markup(text).html()), "") << Markup(text).html().substr(0, 100);
    EXPECT_EQ(html_problem(lines(text).html()), "") << lines(text).html().substr(0, 100);
    const std::string element_html = element("p", {{"title", text}}).html();
    EXPECT_EQ(element_html.substr(0, 10), "<p title=\"");
    EXPECT_EQ(html_problem(element_html.substr(10, element_html.size() - 16)), "");
    EXPECT_EQ(element_html.substr(element_html.size() - 6), "\"></p>");
  }
}

TEST(Html, KeepsAddressesWithinTheServer) {
  for (const std::string& text : hostile_texts()) {
    const std::string url = Url("/jobs").part(text).with("task", text).text();
    EXPECT_EQ(url.substr(0, 6), "/jobs/");
    constexpr std::string_view kAllowed =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~%/?=";
    EXPECT_EQ(url.find_first_not_of(kAllowed), std::string::npos) << url.substr(0, 100);
  }
}

TEST(Html, NamesEachAddressBelowThePrefix) {
  set_url_prefix("/queue");
  EXPECT_EQ(link(Url("/jobs").part("7").with("a", "b"), "x").html(),
            "<a href=\"/queue/jobs/7?a=b\">x</a>");
  EXPECT_EQ(element("form", {{"action", Url("/")}}).html(), "<form action=\"/queue/\"></form>");
  EXPECT_EQ(Url::to_place("main").address(), "#main");
  EXPECT_EQ(Url("/jobs").text(), "/jobs") << "as the routes have it";
  const std::string page = whole_page("x", {});
  for (const char* file : {"page.css", "icon.svg", "page.js"}) {
    EXPECT_NE(page.find(std::string("\"/queue/assets/") + file + '"'), std::string::npos) << file;
  }
  set_url_prefix("");
  EXPECT_EQ(link(Url("/jobs"), "x").html(), "<a href=\"/jobs\">x</a>");
}

TEST(Html, NamesAddressesOfANodeBelowThePathOfTheNode) {
  const Url jobs = Url("/jobs").part("7");
  {
    const AddressesOfNode addresses("eu-2");
    set_url_prefix("/queue");
    EXPECT_EQ(jobs.address(), "/queue/n/eu-2/jobs/7");
    EXPECT_EQ(jobs.at_node("us").address(), "/queue/n/us/jobs/7");
    EXPECT_EQ(jobs.at_node("").address(), "/queue/jobs/7") << "of no node";
    EXPECT_EQ(jobs.text(), "/jobs/7") << "as the routes have it";
    EXPECT_EQ(Url::to_place("main").address(), "#main");
    std::thread([&] { EXPECT_EQ(jobs.address(), "/queue/jobs/7") << "of another thread"; }).join();
    set_url_prefix("");
  }
  EXPECT_EQ(jobs.address(), "/jobs/7");
}

const Columns kTextColumns{{"text", "text"},
                           {"state", "state", Kind::state},
                           {"number", "number", Kind::count},
                           {"time", "time", Kind::time},
                           {"bar", "bar", Kind::part}};

QueryResult rows_of_text(const std::string& text) {
  return {{"text", "state", "number", "time", "bar"}, {text, text, text, text, text}};
}

// With a plain text of the same length there are as many tags and quotes.
TEST(Html, BreaksNoTable) {
  const TableLayout layout{{{"text", "/jobs", "task", "text"}}, {}, {}, "", "text"};
  for (const std::string& text : hostile_texts()) {
    if (text.empty()) continue;
    const std::string plain(text.size(), 'x');
    EXPECT_EQ(acted_on(html_table(kTextColumns, rows_of_text(text), layout, {}, true).html()),
              acted_on(html_table(kTextColumns, rows_of_text(plain), layout, {}, true).html()))
        << Markup(text).html().substr(0, 100);
  }
}

TEST(Html, DrawsNoHostileFlow) {
  const auto drawn = [](const std::string& text) {
    return acted_on(flow_graph({{text, text, text, {}}, {"2", text, "running", {text}}}).html());
  };
  for (const std::string& text : hostile_texts()) EXPECT_EQ(drawn(text), drawn("x"));
}

TEST(Html, LeavesOutAnAttributeWithoutValue) {
  EXPECT_EQ(
      element("input", {{"checked", present_if(false)}, {"required", present_if(true)}}).html(),
      "<input required=\"\">");
  EXPECT_EQ(element("p", "", "a < b").html(), "<p>a &lt; b</p>");
}

Chart jobs(std::vector<std::optional<double>> values) {
  std::vector<std::string> moments(values.size(), "12:00");
  return {"Jobs", std::move(moments), {{"jobs", "first", std::move(values)}}, [](double value) {
            return std::to_string(static_cast<int>(value));
          }};
}

TEST(Chart, RoundsItsScaleUp) {
  EXPECT_EQ(round_up(0), 1);
  EXPECT_EQ(round_up(245), 300);
  EXPECT_EQ(round_up(1000), 1000);
  EXPECT_EQ(round_up(1001), 1200);
  EXPECT_NEAR(round_up(0.035), 0.04, 1e-12);
}

TEST(Chart, HalvesItsScaleInWholeNumbers) {
  for (int highest = 0; highest <= 3000; ++highest) {
    const double top = round_up(highest, true);
    EXPECT_GE(top, highest);
    EXPECT_EQ(std::fmod(top, 2), 0) << highest;
  }
}

TEST(Chart, DrawsValuesFromTheLeftAndFromBelow) {
  const std::string html = chart(jobs({0, 5, 10})).html();
  EXPECT_NE(html.find("d=\"M0 100L300 50L600 0\""), std::string::npos) << html;
}

TEST(Chart, InterruptsALineWhereNothingIsKnown) {
  const std::string html = chart(jobs({10, std::nullopt, 10})).html();
  EXPECT_NE(html.find("d=\"M0 0h2M600 0h2\""), std::string::npos) << html;
}

TEST(Chart, StacksAreas) {
  Chart both = jobs({4, 4});
  both.series.push_back({"more", "second", {{6, 6}}});
  both.is_stacked = true;
  const std::string html = chart(both).html();
  EXPECT_NE(html.find("d=\"M0 60L600 60L600 100L0 100Z\""), std::string::npos) << html;
  EXPECT_NE(html.find("d=\"M0 0L600 0L600 60L0 60Z\""), std::string::npos) << html;
}

TEST(Chart, NamesASumWhereTheLastValueSaysNothing) {
  Chart one = jobs({4, 1});
  one.series[0].sum = "5 in all";
  const std::string html = chart(one).html();
  EXPECT_NE(html.find("<b>5 in all</b>"), std::string::npos) << html;
  EXPECT_EQ(html.find("<b>1</b>"), std::string::npos) << html;
}

TEST(Chart, IsDrawnWithoutAnyValue) {
  EXPECT_NE(chart(jobs({})).html().find("<svg"), std::string::npos);
  EXPECT_NE(chart(jobs({std::nullopt})).html().find("<svg"), std::string::npos);
}

TEST(Chart, SaysThatThereIsNoJobYet) {
  EXPECT_NE(chart(jobs({std::nullopt, 0})).html().find("no job yet"), std::string::npos);
  EXPECT_EQ(chart(jobs({std::nullopt, 1})).html().find("no job yet"), std::string::npos);
}

TEST(Chart, NamesEachMomentOfItsAxisOnce) {
  const auto times = [](const std::vector<std::string>& moments) {
    Chart drawn = jobs({1, 2, 3});
    drawn.moments = moments;
    const std::string html = chart(drawn).html();
    const std::size_t from = html.find("class=\"axis\"");
    return html.substr(html.find('>', from) + 1,
                       html.find("</div>", from) - html.find('>', from) - 1);
  };
  EXPECT_EQ(times({"48 ms", "48 ms", "48 ms"}), "<span>48 ms</span>");
  EXPECT_EQ(times({"1 s", "2 s", "4 s"}), "<span>1 s</span><span>2 s</span><span>4 s</span>");
}

TEST(Chart, DrawsWhatIsNoCourseOfTimeAsBars) {
  Chart both = jobs({10, 0});
  both.series.push_back({"more", "second", {{5, 10}}});
  both.is_bars = true;
  const std::string html = chart(both).html();
  EXPECT_NE(html.find("d=\"M30 100V0h120V100Z\""), std::string::npos) << html;
  EXPECT_NE(html.find("d=\"M150 100V50h120V100ZM450 100V0h120V100Z\""), std::string::npos) << html;
}

constexpr std::int64_t kSecond = 1'000'000;

AttemptSpan span(const char* outcome, std::int64_t claimed, std::int64_t ended) {
  return {"1", outcome, claimed * kSecond, ended * kSecond};
}

bool has(const Markup& markup, std::string_view part) {
  return markup.html().find(part) != std::string::npos;
}

TEST(Timeline, IsDrawnToScaleFromTheDueTimeToTheLastEnd) {
  const Markup drawn = attempt_bars(0, {span("lost", 10, 30), span("completed", 50, 60)});
  EXPECT_TRUE(has(drawn, R"(class="bar bad" x="100" y="16" width="200")")) << drawn.html();
  EXPECT_TRUE(has(drawn, R"(class="bar good" x="500" y="16" width="100")")) << drawn.html();
  EXPECT_TRUE(has(drawn, R"(class="due" d="M0 4V44")")) << drawn.html();
  EXPECT_TRUE(has(drawn,
                  "2 attempts in 1 min, due after 0 ms, attempt 1 lost after 20 s, taken "
                  "from its worker, attempt 1 completed after 10 s\""))
      << drawn.html();
}

TEST(Timeline, MarksWhatWasTakenFromItsWorkerAlone) {
  for (const char* outcome : {"lost", "timed_out", "stalled", "interrupted"}) {
    EXPECT_TRUE(has(attempt_bars(0, {span(outcome, 1, 2)}), "<path class=\"taken\"")) << outcome;
  }
  for (const char* outcome : {"failed", "completed", "snoozed", "running"}) {
    EXPECT_FALSE(has(attempt_bars(0, {span(outcome, 1, 2)}), "<path class=\"taken\"")) << outcome;
  }
}

TEST(Timeline, ShowsAnAttemptThatTookNoTimeAndADueTimeToCome) {
  const Markup drawn = attempt_bars(1000 * kSecond, {span("failed", 0, 0)});
  EXPECT_TRUE(has(drawn, R"(x="0" y="16" width="2")")) << drawn.html();
  EXPECT_TRUE(has(drawn, R"(class="due" d="M600 4V44")")) << drawn.html();
  EXPECT_TRUE(attempt_bars(0, {}).empty());
  EXPECT_TRUE(has(attempt_bars(std::nullopt, {span("failed", 5, 5)}), "<svg"));
}

TEST(Timeline, DrawsNoHostileAttempt) {
  const auto drawn = [](const std::string& text) {
    return acted_on(attempt_bars(0, {{text, text, 1, 2}, {text, text, 3, 4}}).html());
  };
  for (const std::string& text : hostile_texts()) EXPECT_EQ(drawn(text), drawn("x"));
}

TEST(FlowGraph, PutsAJobAfterAllItsParents) {
  EXPECT_EQ(layers_of({{"1", "", "", {}},
                       {"2", "", "", {"1"}},
                       {"3", "", "", {"1", "2"}},
                       {"4", "", "", {"9"}}}),
            (std::vector<std::size_t>{0, 1, 2, 0}));
  EXPECT_EQ(layers_of({{"3", "", "", {"2"}}, {"2", "", "", {"1"}}, {"1", "", "", {}}}),
            (std::vector<std::size_t>{2, 1, 0}));
}

TEST(FlowGraph, EndsACircle) {
  const auto layers = layers_of({{"1", "", "", {"2"}}, {"2", "", "", {"1"}}});
  EXPECT_EQ(layers.size(), 2U);
  EXPECT_LT(std::max(layers[0], layers[1]), 2U);
}

struct Box {
  int x;
  int y;
};

// The numbers behind each place where the text stands.
std::vector<Box> boxes_of(const std::string& html, const char* before) {
  std::vector<Box> boxes;
  for (std::size_t at = html.find(before); at != std::string::npos;
       at = html.find(before, at + 1)) {
    Box box{};
    const std::string rest = html.substr(at + std::strlen(before));
    if (std::sscanf(rest.c_str(), "%d\" y=\"%d", &box.x, &box.y) == 2 ||
        std::sscanf(rest.c_str(), "%d %d", &box.x, &box.y) == 2) {
      boxes.push_back(box);
    }
  }
  return boxes;
}

// Boxes are 160 wide and 44 high, and 52 apart.
TEST(FlowGraph, RunsNoEdgeBehindABox) {
  const std::string html = flow_graph({{"1", "a", "ready", {}},
                                       {"2", "b", "parked", {"1"}},
                                       {"3", "c", "parked", {"2"}},
                                       {"4", "d", "parked", {"3", "1"}},
                                       {"5", "e", "parked", {"3", "2", "1"}}})
                               .html();
  const std::vector<Box> boxes = boxes_of(html, "<rect x=\"");
  ASSERT_EQ(boxes.size(), 5U) << html;
  int lanes = 0;
  for (const Box& from : boxes_of(html, "class=\"edge\" d=\"M")) {
    const std::string start = "M" + std::to_string(from.x) + ' ' + std::to_string(from.y);
    const std::string shape = html.substr(html.find(start) + start.size(), 4);
    if (shape == "h160") {
      ++lanes;
      for (const Box& box : boxes) {
        EXPECT_FALSE(box.x == from.x && from.y >= box.y && from.y <= box.y + 44) << html;
      }
    }
  }
  EXPECT_EQ(lanes, 3) << "one of 1 in each layer, one of 2; " << html;
  // A curve leads from one layer to the next.
  const std::regex curve(R"(M(\d+) \d+C\d+ \d+ \d+ \d+ (\d+) )");
  int curves = 0;
  for (std::sregex_iterator found(html.begin(), html.end(), curve), end; found != end; ++found) {
    EXPECT_EQ(std::stoi((*found)[2]) - std::stoi((*found)[1]), 52) << found->str();
    ++curves;
  }
  EXPECT_EQ(curves, 10) << html;
}

TEST(Rule, IsSpelledAsDurationsAre) {
  EXPECT_EQ(rule_of("every 00:10:00").html(), "<span class=\"whole\">every 10 min</span>");
  EXPECT_EQ(rule_of("every 36:00:00").html(), "<span class=\"whole\">every 1 d 12 h</span>");
  EXPECT_EQ(rule_of("*/15 * * * *").html(), "<span class=\"whole\">*/15 * * * *</span>");
  EXPECT_EQ(rule_of("every 00:10:00 or so").html(),
            "<span class=\"whole\">every 00:10:00 or so</span>");
  EXPECT_EQ(rule_of("1,2,3,4,5,6 1,2,3,4,5 * * *").html(),
            "<span>1,2,3,4,5,6 1,2,3,4,5 * * *</span>");
}

TEST(Moment, IsReadAsTheServerPrintsIt) {
  EXPECT_EQ(microseconds_of("1970-01-01 00:00:01.5+00"), 1'500'000);
  EXPECT_EQ(microseconds_of("1970-01-01 05:30:00+05:30"), 0);
  EXPECT_EQ(microseconds_of("1969-12-31 23:00:00-01"), 0);
  EXPECT_EQ(microseconds_of("infinity"), std::nullopt);
  EXPECT_EQ(microseconds_of(""), std::nullopt);
}

TEST(Moment, IsToldByTheClockOfItsZone) {
  EXPECT_EQ(clock_before("2026-11-27 00:04:30.5+01", 0), "00:04");
  EXPECT_EQ(clock_before("2026-11-27 00:04:30.5+01", 300), "23:59");
  EXPECT_EQ(utc_of(*microseconds_of("2026-11-27 00:04:30+01")), "2026-11-26T23:04:30Z");
}

TEST(Moment, IsToldFromNow) {
  constexpr std::int64_t kSecond = 1'000'000;
  EXPECT_EQ(spell_distance(0, 100), "now");
  EXPECT_EQ(spell_distance(0, 5 * kSecond), "5 s ago");
  EXPECT_EQ(spell_distance(61 * kSecond, 0), "in 1 min");
  EXPECT_EQ(spell_distance(0, 90000 * kSecond), "1 d ago");
  EXPECT_EQ(clock_of("2026-11-24 23:05:59+00"), "23:05");
}

}  // namespace
}  // namespace pulse::console
