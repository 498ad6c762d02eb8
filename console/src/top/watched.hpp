// Watched: what the screen reads and changes, of one database or of several nodes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "database/node_sessions.hpp"
#include "top/pane.hpp"
#include "top/view.hpp"

namespace pulse::console {

struct Reading {
  QueryResult overview = {};  // one row
  QueryResult rows = {};      // of the pane
  std::string job = {};       // the page of the job, without tints
  std::string problem = {};   // why the job's page is not there
  std::chrono::microseconds worked{0};
};

// A change that the user has agreed to. Returns the message for the user; throws as
// Database::query does.
using RowChange = std::function<std::string(Database& database)>;

class Watched {
 public:
  virtual ~Watched() = default;

  virtual const std::vector<Pane>& panes() const = 0;
  // The key of the first pane; the next panes have the next digits.
  virtual char first_key() const = 0;
  // What the head of the screen names.
  virtual std::string where() const = 0;

  // Reads the overview, the pane and the page of the job, if the user has opened a job. Throws
  // Refused and Unreachable.
  virtual Reading read(const Pane& pane, const RowName* job) = 0;

  // Makes the change at the row's database. Returns the message; throws Refused, and Unreachable
  // where the change may have been made.
  virtual std::string change(const RowName& row, const RowChange& change) = 0;
};

std::unique_ptr<Watched> watch_database(Database& database);

// A node that has not answered within kNodePatience, or has refused, is a row that says so.
std::unique_ptr<Watched> watch_nodes(std::vector<NodeDatabase> nodes);

}  // namespace pulse::console
