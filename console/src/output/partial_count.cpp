#include "output/partial_count.hpp"

#include <algorithm>

#include "text/spelling.hpp"

namespace pulse::console {

std::string PartialCount::text() const {
  return spell_count(std::to_string(jobs) + (is_part ? "+" : ""));
}

PartialCount sum_of(const QueryResult::Row& overview, std::initializer_list<const char*> fields) {
  const auto estimated = json_strings(overview.optional_text("estimated"));
  PartialCount sum;
  for (const char* field : fields) {
    sum.jobs += overview.optional_integer(field).value_or(0);
    sum.is_part =
        sum.is_part || std::find(estimated.begin(), estimated.end(), field) != estimated.end();
  }
  return sum;
}

std::optional<std::string> partial_count(const QueryResult::Row& depth, const std::string& field) {
  const bool is_open = field == "ready" || field == "open" || field == "future";
  if (!is_open && field != "parked" && field != "running") return std::nullopt;
  const auto& jobs = depth.optional_text(field);
  const std::string plus = depth.optional_text(is_open ? "plus" : "plus_of_all").value_or("");
  if (!jobs || plus.empty()) return std::nullopt;
  return spell_count(*jobs + plus);
}

}  // namespace pulse::console
