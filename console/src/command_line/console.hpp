// The parts that every command has: common options, the database and the output.
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

  // Prints a document as --json shows the document: harmless for a terminal.
  void print_json(const std::string& document) const;
  // Prints a list as a table, or as JSON where the user asked for JSON.
  void print_list(const Columns& columns, const QueryResult& rows) const;
  // Prints in words, or as `document` where the user asked for JSON, the change that a command has
  // made.
  void print_done(const std::string& words, const std::string& document) const;
};

// A question on the terminal. Without a terminal to answer on, the answer is no.
bool is_confirmed(const Console& console, const std::string& question);

}  // namespace pulse::console
