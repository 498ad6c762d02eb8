#include "job/node_jobs.hpp"

#include <utility>

#include "base/postgres/connection_options.hpp"
#include "text/id.hpp"

namespace pulse::console {
namespace {

// The page of one node, while jobs move from the page to the list of all nodes.
struct NodePage {
  const NodeAnswer<NodeJobs>* answer;
  const char* moment;    // the field that tells the order
  std::size_t next = 0;  // the first job that the list does not have

  const FoundJobs& found() const { return answer->value.found; }
  bool is_at_end() const { return next == found().rows.size(); }
  QueryResult::Row job() const { return found().rows[next]; }
};

// The page whose next job comes next in the list; of two, the page of the first node.
NodePage* first_page(std::vector<NodePage>& pages) {
  NodePage* first = nullptr;
  for (NodePage& page : pages) {
    if (page.is_at_end()) continue;
    const bool is_first =
        first == nullptr || page.job().number(page.moment) > first->job().number(first->moment);
    if (is_first) first = &page;
  }
  return first;
}

NodePlace place_behind(const NodePage& page, const JobSearch& search) {
  NodePlace place = NodePlace::behind_all();
  if (!page.is_at_end()) {
    // A place is above its first job, and no id lies between an id and the next one.
    place = {std::to_string(page.job().integer("id") + 1), page.job().optional_text("finished_at")};
  } else if (page.found().next) {
    place = {*page.found().next, page.found().next_end};
  }
  if (!search.is_by_end) place.end.reset();
  return place;
}

void add_job_row(QueryResult& rows, const std::string& node, const QueryResult::Row& job) {
  rows.add_cell(node);
  rows.add_cell(std::nullopt);
  for (const Column& column : kFoundColumns) rows.add_cell(job.optional_text(column.field));
}

void add_trouble_row(QueryResult& rows, const NodeAnswer<NodeJobs>& answer) {
  rows.add_cell(answer.node);
  rows.add_cell(answer.trouble);
  for (std::size_t i = 0; i < kFoundColumns.size(); ++i) rows.add_cell(std::nullopt);
}

QueryResult no_rows() {
  std::vector<std::string> fields;
  for (const Column& column : node_job_columns()) fields.push_back(column.field);
  return {std::move(fields), {}};
}

// "eu:17", with an end "eu:17@2026-12-24 18:00:00+00".
std::optional<std::pair<std::string, NodePlace>> parse_place(std::string_view text) {
  const auto colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const std::string_view node = text.substr(0, colon);
  const std::string_view rest = text.substr(colon + 1);
  const auto at = rest.find('@');
  NodePlace place{std::string(rest.substr(0, at))};
  if (at != std::string_view::npos) place.end = std::string(rest.substr(at + 1));
  const bool is_place = is_database_name(node) && (place.is_behind_all() || is_id_text(place.id));
  if (!is_place) return std::nullopt;
  return std::pair(std::string(node), std::move(place));
}

}  // namespace

std::string text_of(const NodePlaces& places) {
  std::string text;
  for (const auto& [node, place] : places) {
    text += (text.empty() ? "" : ",") + node + ':' + place.id;
    if (place.end) text += '@' + *place.end;
  }
  return text;
}

std::optional<NodePlaces> parse_places(std::string_view text) {
  NodePlaces places;
  while (true) {
    const auto comma = text.find(',');
    auto place = parse_place(text.substr(0, comma));
    const bool is_new = place && places.insert(std::move(*place)).second;
    if (!is_new) return std::nullopt;
    if (comma == std::string_view::npos) return places;
    text.remove_prefix(comma + 1);
  }
}

NodeJobs find_jobs_of_node(Database& database, JobSearch search, const NodePlaces& places) {
  NodeJobs jobs{database.query(kDatabaseIdentity)[0].text("identity"), {}};
  search.before.reset();
  search.before_end.reset();
  const auto place = places.find(database.name());
  if (place != places.end()) {
    if (place->second.is_behind_all()) return jobs;
    search.before = place->second.id;
    search.before_end = place->second.end;
  }
  jobs.found = find_jobs(database, search);
  return jobs;
}

JobsOfNodes merge_jobs(NodeAnswers<NodeJobs> answers, const JobSearch& search,
                       const NodePlaces& places) {
  refuse_second_names(answers, [](const NodeJobs& jobs) { return jobs.identity; });
  JobsOfNodes merged{no_rows(), places, false, true, {}};
  std::vector<NodePage> pages;
  const char* const moment = search.is_by_end ? "finished_epoch" : "created_epoch";
  for (const auto& answer : answers) {
    if (answer.is_there()) {
      pages.push_back({&answer, moment});
    } else {
      add_trouble_row(merged.rows, answer);
      merged.is_complete = false;
    }
  }
  for (int count = 0; count < search.limit; ++count) {
    NodePage* const page = first_page(pages);
    if (page == nullptr) break;
    add_job_row(merged.rows, page->answer->node, page->job());
    ++page->next;
  }
  for (const NodePage& page : pages) {
    const NodePlace place = place_behind(page, search);
    merged.has_more = merged.has_more || !place.is_behind_all();
    if (page.is_at_end() && page.found().is_cut(search)) merged.cut.push_back(page.answer->node);
    merged.next[page.answer->node] = place;
  }
  return merged;
}

const Columns& node_job_columns() {
  static const Columns kColumns = [] {
    Columns columns{{"node", "node"}, {"trouble", "trouble", Kind::text, 60}};
    columns.insert(columns.end(), kFoundColumns.begin(), kFoundColumns.end());
    return columns;
  }();
  return kColumns;
}

}  // namespace pulse::console
