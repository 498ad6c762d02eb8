// Query result: the rows of a query, copied out of the client library: plain values that outlive a
// connection.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/loop/duration.hpp"

namespace pulse {

class QueryResult {
 public:
  using Cell = std::optional<std::string>;

  // One row, read by column name. A missing column, or a column of another type than asked for,
  // means that the server speaks another version: std::runtime_error.
  class Row {
   public:
    bool is_null(std::string_view column) const { return !cell(column); }
    const std::string& text(std::string_view column) const;
    const Cell& optional_text(std::string_view column) const { return cell(column); }
    std::int64_t integer(std::string_view column) const;
    std::optional<std::int64_t> optional_integer(std::string_view column) const;
    double number(std::string_view column) const;
    std::optional<double> optional_number(std::string_view column) const;
    // A decimal number of seconds, as EXTRACT(epoch FROM an interval) gives.
    Duration seconds(std::string_view column) const;
    std::optional<Duration> optional_seconds(std::string_view column) const;
    // A bigint[] without NULLs; a NULL array is empty.
    std::vector<std::int64_t> integers(std::string_view column) const;
    // The row's long texts were left out, because the reply exceeded the bytes allowed: see
    // Call::max_bytes.
    bool is_cut() const { return rows_.cut_.contains(number_); }
    std::size_t bytes() const;  // with the bytes that were left out

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
  // Moves out a cell that the caller does not read again; a long text has one copy less.
  Cell take(std::size_t number, std::string_view column);
  void reserve(std::size_t rows) { cells_.reserve(cells_.size() + rows * columns_.size()); }
  // Adds the next cell of the last row.
  void add_cell(Cell cell) { cells_.push_back(std::move(cell)); }
  void set_last_cut(std::size_t bytes) { cut_[size() - 1] = bytes; }

 private:
  std::size_t place_of(std::size_t number, std::string_view column) const;

  std::vector<std::string> columns_;
  std::vector<Cell> cells_;                 // row by row
  std::map<std::size_t, std::size_t> cut_;  // bytes that cut rows had, by number
};

// The strings of a JSON array; none for NULL.
std::vector<std::string> json_strings(const QueryResult::Cell& text);

}  // namespace pulse
