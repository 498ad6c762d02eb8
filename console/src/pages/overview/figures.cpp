#include "pages/overview/figures.hpp"

#include <vector>

#include "output/partial_count.hpp"
#include "text/spelling.hpp"

namespace pulse::console {
namespace {

struct Figure {
  const char* name;
  Url url;
  std::string number;
  Markup note;
  const char* css = "";
};

Markup drawn(const Figure& figure, Links links) {
  const Markup content{element("span", "name", figure.name), element("span", "big", figure.number),
                       element("span", "note", figure.note)};
  return element("li", {{"class", std::string("figure ") + figure.css}},
                 links == Links::shown ? link(figure.url, content) : element("div", "", content));
}

std::string count(const QueryResult::Row& row, const char* field) {
  return sum_of(row, {field}).text();
}

// The parts that are not zero: "3 silent · 1 lost".
std::string parts(const QueryResult::Row& row,
                  std::initializer_list<std::pair<const char*, const char*>> fields) {
  std::string text;
  for (const auto& [field, name] : fields) {
    const std::string number = count(row, field);
    if (number == "0") continue;
    text += (text.empty() ? "" : " · ") + number + ' ' + name;
  }
  return text;
}

Figure ready(const QueryResult::Row& row) {
  const std::string age = row.is_null("oldest_due_age")
                              ? "none is due"
                              : "oldest due for " + spell_seconds(row.number("oldest_due_age"));
  return {"Ready", Url("/jobs").with("state", "ready"), count(row, "ready"), age};
}

Figure parked(const QueryResult::Row& row) {
  const std::string number =
      sum_of(row, {"parked_full", "parked_paused", "parked_future", "parked_waiting"}).text();
  return {"Parked", Url("/jobs").with("state", "parked"), number,
          parts(row, {{"parked_full", "behind queues"},
                      {"parked_paused", "paused"},
                      {"parked_future", "later"},
                      {"parked_waiting", "after others"}})};
}

Figure later(const QueryResult::Row& row) {
  const bool is_none = row.optional_text("due_next_minute") == "0";
  return {"Later", Url("/jobs").with("state", "ready"), count(row, "future"),
          is_none ? "not due yet"
                  : "not due yet · " + count(row, "due_next_minute") + " within a minute"};
}

Figure failed(const QueryResult::Row& row) {
  const PartialCount bad = sum_of(row, {"failed", "quarantined"});
  return {"Failed", Url("/failed"), bad.text(),
          bad.jobs == 0 ? "in the last minute"
                        : parts(row, {{"failed", "failed"}, {"quarantined", "quarantined"}}),
          bad.jobs > 0 ? "bad" : ""};
}

Figure living_workers(const QueryResult::Row& row) {
  const std::int64_t gone = sum_of(row, {"workers_silent", "workers_lost"}).jobs;
  const bool is_alone = row.text("workers_alive") == "0";
  return {"Workers", Url("/workers"), count(row, "workers_alive"),
          gone + sum_of(row, {"workers_draining"}).jobs == 0
              ? std::string(is_alone ? "none takes jobs" : "alive")
              : parts(row, {{"workers_draining", "draining"},
                            {"workers_silent", "silent"},
                            {"workers_lost", "lost within the hour"}}),
          is_alone   ? "bad"
          : gone > 0 ? "warning"
                     : ""};
}

}  // namespace

Markup overview_figures(const QueryResult::Row& overview, Links links) {
  const std::vector<Figure> figures{
      ready(overview),
      {"Running", Url("/running"), count(overview, "running"), "with a worker"},
      parked(overview),
      later(overview),
      {"Completed", Url("/tasks"), count(overview, "completed"), "in the last minute"},
      failed(overview),
      living_workers(overview)};
  Markup list;
  for (const Figure& figure : figures) list += drawn(figure, links);
  return element("ul", "figures", list);
}

}  // namespace pulse::console
