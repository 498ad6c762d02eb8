#include "output/partial_count.hpp"

#include <algorithm>

#include "text/spelling.hpp"

namespace pulse::console {

std::string PartialCount::value() const { return std::to_string(jobs) + (is_part ? "+" : ""); }

std::string PartialCount::text() const { return spell_count(value()); }

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

}  // namespace pulse::console
