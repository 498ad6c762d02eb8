// Cells of a server's answer, read as each type that the worker asks for.
#include "base/postgres/query_result.hpp"

#include <stdexcept>

#include "base/postgres/array_literal.hpp"
#include "target.hpp"

namespace pulse::fuzz {
namespace {

// The value, or nothing when the cell is refused in the way that callers expect.
template <typename Read>
auto read_or_refuse(Read read) -> std::optional<decltype(read())> {
  try {
    return read();
  } catch (const std::runtime_error&) {
    return std::nullopt;
  }
}

}  // namespace

void query_result(std::string_view input) {
  const QueryResult table({"cell", "nothing"}, {std::string(input), std::nullopt});
  const QueryResult::Row row = table[0];
  promise(row.text("cell") == input, "a text is what came");
  promise(!read_or_refuse([&] { return row.integer("nothing"); }), "NULL is no number");
  promise(!read_or_refuse([&] { return row.text("other"); }),
          "a column that is missing is refused");
  if (const auto number = read_or_refuse([&] { return row.integer("cell"); })) {
    const QueryResult again({"cell"}, {std::to_string(*number)});
    promise(again[0].integer("cell") == *number, "a number written again is the same");
  }
  if (const auto seconds = read_or_refuse([&] { return row.seconds("cell"); })) {
    constexpr std::int64_t kMax = 1'000'000'000'000;
    promise(std::abs(seconds->count()) <= kMax, "no time can overflow");
  }
  if (const auto numbers = read_or_refuse([&] { return row.integers("cell"); })) {
    const QueryResult again({"cell"}, {pulse::array_literal(*numbers)});
    promise(again[0].integers("cell") == *numbers, "numbers written again are the same");
  }
}

}  // namespace pulse::fuzz
