// What top shows of rows: their order, those that pass the filter, and the selection that stays;
// and how often it looks.
#include "top/view.hpp"

#include <gtest/gtest.h>

#include "database/pace.hpp"

namespace pulse::console {
namespace {

const Pane kPane{"queues", "", {{"queue", "name"}, {"jobs", "jobs", Kind::count}}, "name", "queue",
                 nullptr,  {}};

QueryResult queues() {
  return {{"name", "jobs"}, {"mail", "9", "post", "10", "ink", std::nullopt, "zoo", "2"}};
}

using Numbers = std::vector<std::size_t>;

TEST(View, KeepsTheOrderOfTheQuery) {
  EXPECT_EQ(visible_rows(kPane, queues(), {}), (Numbers{0, 1, 2, 3}));
}

TEST(View, SortsNumbersAsNumbersAndWhatIsMissingLast) {
  Choice choice;
  choice.sort_column = 1;
  EXPECT_EQ(visible_rows(kPane, queues(), choice), (Numbers{1, 0, 3, 2}));
  choice.is_descending = false;
  EXPECT_EQ(visible_rows(kPane, queues(), choice), (Numbers{3, 0, 1, 2}));
}

TEST(View, FiltersByAnyColumnInAnyCase) {
  Choice choice;
  choice.filter = "O";
  EXPECT_EQ(visible_rows(kPane, queues(), choice), (Numbers{1, 3}));
  choice.filter = "9";
  EXPECT_EQ(visible_rows(kPane, queues(), choice), (Numbers{0}));
}

TEST(View, KeepsTheSelectionWhereRowsMove) {
  Choice choice;
  choice.selected.id = "zoo";
  EXPECT_EQ(selected_place(kPane, queues(), {0, 1, 2, 3}, choice), 3U);
  EXPECT_EQ(selected_place(kPane, queues(), {3, 0}, choice), 0U);
  choice.selected.id = "gone";
  EXPECT_EQ(selected_place(kPane, queues(), {2, 1}, choice), 0U);
}

TEST(View, ShowsTheRowsAroundTheSelection) {
  Choice choice;
  choice.selected.id = "zoo";
  const auto lines = pane_lines(kPane, queues(), choice, {3, 80});
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(line_text(lines[0]), "queue  jobs  ");
  EXPECT_EQ(line_text(lines[2]), "zoo       2  ");
  EXPECT_TRUE(lines[2].is_selected);
  EXPECT_FALSE(lines[1].is_selected);
}

TEST(View, SaysWhenNothingPasses) {
  Choice choice;
  choice.filter = "none of them";
  EXPECT_EQ(line_text(pane_lines(kPane, queues(), choice, {9, 80})[1]), "none with this filter");
  EXPECT_EQ(line_text(pane_lines(kPane, QueryResult(), {}, {9, 80})[1]), "none");
}

TEST(PaceTest, a_watcher_costs_the_server_a_two_hundredth_of_a_core) {
  using std::chrono::microseconds;
  using std::chrono::milliseconds;
  Pace pace(milliseconds(1000));
  EXPECT_EQ(pace.pause_after(microseconds(0)), milliseconds(1000));
  EXPECT_EQ(pace.pause_after(microseconds(5000)), milliseconds(1000));
  EXPECT_EQ(pace.pause_after(microseconds(14'000)), milliseconds(2800));
  Pace slow(milliseconds(4000));
  EXPECT_EQ(slow.pause_after(microseconds(0)), milliseconds(4000));
  EXPECT_EQ(slow.pause_after(microseconds(14'000)), milliseconds(4000));
}

TEST(PaceTest, a_watcher_queries_each_five_seconds_at_least) {
  using std::chrono::milliseconds;
  Pace pace(milliseconds(1000));
  pace.pause_after(std::chrono::seconds(0));
  EXPECT_EQ(pace.pause_after(std::chrono::seconds(1)), milliseconds(5000));
  Pace slow(milliseconds(8000));
  slow.pause_after(std::chrono::seconds(0));
  EXPECT_EQ(slow.pause_after(std::chrono::seconds(1)), milliseconds(8000));
}

TEST(PaceTest, the_first_query_slows_no_watcher) {
  using std::chrono::milliseconds;
  Pace pace(milliseconds(1000));
  EXPECT_EQ(pace.pause_after(std::chrono::seconds(1)), milliseconds(1000));
  EXPECT_EQ(pace.pause_after(std::chrono::seconds(1)), milliseconds(5000));
}

}  // namespace
}  // namespace pulse::console
