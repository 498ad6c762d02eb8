// The parts that every command has: common options, the database and the output.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "command_line/exit_status.hpp"
#include "database/cluster.hpp"
#include "database/node_sessions.hpp"
#include "list/lists.hpp"
#include "output/columns.hpp"
#include "output/output.hpp"

namespace pulse::console {

struct CommonOptions {
  std::vector<std::string> databases;  // as given: [NAME=]DSN
  std::optional<std::string> cluster;  // a DSN: the nodes of a cluster, in place of `databases`
  bool is_json = false;
  bool has_no_pager = false;
  bool is_agreed = false;  // --yes
};

// The list of one node, taken before the lists of all nodes are printed.
struct TakenList {
  std::string node;
  std::string trouble = {};  // why there is no list; empty without trouble
  Columns columns = {};
  QueryResult rows = {};
  std::string end = {};  // see word_of_end()
};

struct Console {
  CommonOptions options;
  Database database;  // the only database, or the first
  // Of several databases each, and of a cluster, which may have one node; else empty.
  std::vector<NodeDatabase> nodes;
  Output output;
  TakenList* taken = nullptr;  // where print_list() leaves a list instead of printing the list
  std::optional<Cluster> cluster = std::nullopt;
  const char* const* arguments = nullptr;  // of the process

  // Prints a document as --json shows it: harmless for a terminal.
  void print_json(const std::string& document) const;
  // Prints a list as a table, or as JSON where the user asked for JSON. The list of one of several
  // nodes waits for the lists of the other nodes.
  void print_list(const Columns& columns, const QueryResult& rows) const;
  // Tells on the standard error where the list may end before the last row.
  void print_list(const List& list, const QueryResult& rows) const;
  // Prints in words, or as `document` where the user asked for JSON, the change that a command has
  // made.
  void print_done(const std::string& words, const std::string& document) const;
};

// A question on the terminal. Without a terminal to answer on, the answer is no.
bool is_confirmed(const Console& console, const std::string& question);

}  // namespace pulse::console
