// What a query returned, copied out of the client library: plain values that outlive a connection.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "loop/duration.hpp"

namespace pulse {

class QueryResult {
 public:
  using Cell = std::optional<std::string>;

  // One row, read by column name. A column that is missing or has another type than asked for means
  // that the server speaks another version: std::runtime_error.
  class Row {
   public:
    bool is_null(std::string_view column) const { return !cell(column); }
    const std::string& text(std::string_view column) const;
    const Cell& optional_text(std::string_view column) const { return cell(column); }
    std::int64_t integer(std::string_view column) const;
    std::optional<std::int64_t> optional_integer(std::string_view column) const;
    // A decimal number of seconds, as EXTRACT(epoch FROM an interval) gives it.
    Duration seconds(std::string_view column) const;
    std::optional<Duration> optional_seconds(std::string_view column) const;
    // A bigint[] without NULLs; a NULL array is empty.
    std::vector<std::int64_t> integers(std::string_view column) const;

   private:
    friend class QueryResult;
    Row(const QueryResult& rows, std::size_t number) : rows_(rows), number_(number) {}
    const Cell& cell(std::string_view column) const;

    const QueryResult& rows_;
    std::size_t number_;
  };

  QueryResult() = default;
  QueryResult(std::vector<std::string> columns, std::vector<Cell> cells)
      : columns_(std::move(columns)), cells_(std::move(cells)) {}

  std::size_t size() const { return columns_.empty() ? 0 : cells_.size() / columns_.size(); }
  bool empty() const { return size() == 0; }
  Row operator[](std::size_t number) const { return Row(*this, number); }

 private:
  std::vector<std::string> columns_;
  std::vector<Cell> cells_;  // row by row
};

// The strings of a JSON array; none for NULL.
std::vector<std::string> json_strings(const QueryResult::Cell& text);

}  // namespace pulse
