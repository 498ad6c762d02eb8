#include "base/postgres/query_result.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

namespace pulse {
namespace {

std::int64_t to_integer(std::string_view text, std::string_view column) {
  std::int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || rest != end) {
    throw std::runtime_error("column " + std::string(column) + " is not a whole number");
  }
  return number;
}

}  // namespace

const QueryResult::Cell& QueryResult::Row::cell(std::string_view column) const {
  return rows_.cells_[rows_.place_of(number_, column)];
}

std::size_t QueryResult::place_of(std::size_t number, std::string_view column) const {
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (columns_[i] == column) return number * columns_.size() + i;
  }
  throw std::runtime_error("the server returned no column " + std::string(column));
}

QueryResult::Cell QueryResult::take(std::size_t number, std::string_view column) {
  return std::exchange(cells_[place_of(number, column)], std::nullopt);
}

std::size_t QueryResult::Row::bytes() const {
  if (is_cut()) return rows_.cut_.at(number_);
  const std::size_t width = rows_.columns_.size();
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < width; ++i) {
    const Cell& value = rows_.cells_[number_ * width + i];
    bytes += value ? value->size() : 0;
  }
  return bytes;
}

const std::string& QueryResult::Row::text(std::string_view column) const {
  const Cell& value = cell(column);
  if (!value) throw std::runtime_error("column " + std::string(column) + " is null");
  return *value;
}

std::int64_t QueryResult::Row::integer(std::string_view column) const {
  return to_integer(text(column), column);
}

std::optional<std::int64_t> QueryResult::Row::optional_integer(std::string_view column) const {
  if (is_null(column)) return std::nullopt;
  return integer(column);
}

double QueryResult::Row::number(std::string_view column) const {
  const std::string& value = text(column);
  double number = 0;
  const char* end = value.data() + value.size();
  const auto [rest, error] = std::from_chars(value.data(), end, number);
  if (error != std::errc{} || rest != end) {
    throw std::runtime_error("column " + std::string(column) + " is not a number");
  }
  return number;
}

std::optional<double> QueryResult::Row::optional_number(std::string_view column) const {
  if (is_null(column)) return std::nullopt;
  return number(column);
}

Duration QueryResult::Row::seconds(std::string_view column) const {
  // Longer than 30 years is for ever; a duration must not overflow in sums with points in time.
  constexpr double kMax = 1e9;
  return Duration(std::llround(std::clamp(number(column), -kMax, kMax) * 1000));
}

std::optional<Duration> QueryResult::Row::optional_seconds(std::string_view column) const {
  if (is_null(column)) return std::nullopt;
  return seconds(column);
}

std::vector<std::int64_t> QueryResult::Row::integers(std::string_view column) const {
  std::vector<std::int64_t> numbers;
  const Cell& value = cell(column);
  if (!value) return numbers;
  std::string_view rest = *value;
  if (rest.size() < 2 || rest.front() != '{' || rest.back() != '}') {
    throw std::runtime_error("column " + std::string(column) + " is not an array");
  }
  rest = rest.substr(1, rest.size() - 2);
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    numbers.push_back(to_integer(rest.substr(0, comma), column));
    rest.remove_prefix(comma == std::string_view::npos ? rest.size() : comma + 1);
  }
  return numbers;
}

std::vector<std::string> json_strings(const QueryResult::Cell& text) {
  std::vector<std::string> strings;
  if (!text) return strings;
  const auto values = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  for (const auto& value : values) {
    if (value.is_string()) strings.push_back(value.get<std::string>());
  }
  return strings;
}

}  // namespace pulse
