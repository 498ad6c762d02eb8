#include "top/merged_rows.hpp"

#include <algorithm>
#include <set>

#include "top/view.hpp"

namespace pulse::console {
namespace {

struct PlacedRow {
  const NodeAnswer<QueryResult>* answer;
  std::size_t number;
};

// What the screen reads of a row.
std::vector<std::string> fields_of_pane(const Pane& pane) {
  std::set<std::string> fields{pane.id_field};
  if (pane.more_field != nullptr) fields.insert(pane.more_field);
  for (const Column& column : pane.columns) {
    if (column.field != kNodeWords) fields.insert(column.field);
  }
  return {fields.begin(), fields.end()};
}

// A time where the pane does not show the field.
Kind kind_of_field(const Pane& pane, const std::string& field) {
  for (const Column& column : pane.columns) {
    if (column.field == field) return column.kind;
  }
  return Kind::time;
}

std::vector<PlacedRow> rows_in_order(const Pane& pane, const NodeAnswers<QueryResult>& answers) {
  std::vector<PlacedRow> rows;
  for (const auto& answer : answers) {
    if (!answer.is_there()) continue;
    for (std::size_t i = 0; i < answer.value.size(); ++i) rows.push_back({&answer, i});
  }
  if (pane.merged_by == nullptr) return rows;
  const Kind kind = kind_of_field(pane, pane.merged_by);
  const auto cell = [&](const PlacedRow& row) -> const QueryResult::Cell& {
    return row.answer->value[row.number].optional_text(pane.merged_by);
  };
  std::stable_sort(rows.begin(), rows.end(), [&](const PlacedRow& left, const PlacedRow& right) {
    return is_before(kind, cell(left), cell(right), /*is_descending=*/true);
  });
  return rows;
}

}  // namespace

QueryResult merged_rows(const Pane& pane, const NodeAnswers<QueryResult>& answers) {
  const std::vector<std::string> fields = fields_of_pane(pane);
  std::vector<std::string> all{"node", kNodeWords};
  all.insert(all.end(), fields.begin(), fields.end());
  QueryResult merged(std::move(all), {});
  for (const auto& answer : answers) {
    if (answer.is_there()) continue;
    merged.add_cell(answer.node);
    merged.add_cell(answer.node + ' ' + answer.trouble.substr(0, answer.trouble.find(": ")));
    for (std::size_t i = 0; i < fields.size(); ++i) merged.add_cell(std::nullopt);
  }
  for (const PlacedRow& row : rows_in_order(pane, answers)) {
    merged.add_cell(row.answer->node);
    merged.add_cell(row.answer->node);
    for (const std::string& field : fields) {
      merged.add_cell(row.answer->value[row.number].optional_text(field));
    }
  }
  return merged;
}

}  // namespace pulse::console
