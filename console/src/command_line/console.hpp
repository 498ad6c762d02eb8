// What every command has: its options, the database and the output.
#pragma once

#include <string>

#include "command_line/exit_status.hpp"
#include "database/database.hpp"
#include "output/columns.hpp"
#include "output/output.hpp"

namespace pulse::console {

struct CommonOptions {
  std::string database;
  bool is_json = false;
  bool has_no_pager = false;
  bool is_agreed = false;  // --yes
};

struct Console {
  CommonOptions options;
  Database database;
  Output output;

  // A document as --json shows it: harmless for a terminal.
  void print_json(const std::string& document) const;
  // A list as a table, or as JSON where that was asked for.
  void print_list(const Columns& columns, const QueryResult& rows) const;
  // What a command has done, in words, or as `document` where JSON was asked for.
  void print_done(const std::string& words, const std::string& document) const;
};

// A question on the terminal. Without a terminal to answer on, the answer is no.
bool is_confirmed(const Console& console, const std::string& question);

}  // namespace pulse::console
