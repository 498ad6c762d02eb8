// The steps of an operation. Each step is a transaction of its own.
#pragma once

#include <chrono>
#include <string>

#include "database/database.hpp"

namespace pulse::console {

// How many jobs the next step has. A step locks its jobs until its commit, and a slow machine takes
// seconds for an undo of 1,000 jobs: so the first step is small, and later ones grow and shrink by
// the time of the step before.
class StepSize {
 public:
  int jobs() const noexcept { return jobs_; }
  void note_step(std::chrono::milliseconds took) noexcept;

 private:
  int jobs_ = 100;
};

class OperationSteps {
 public:
  OperationSteps(Database& database, std::string id);

  // Makes the next step. Returns the operation: a row of operation_columns(), and `reasons`, the
  // reasons of skipped_because in words. Throws as Database::query does.
  QueryResult run();

 private:
  Database& database_;
  const std::string id_;
  StepSize size_;
};

// Makes steps until the operation ends or `moment` is over, at least one; returns as run() does.
QueryResult run_steps(Database& database, const std::string& id, std::chrono::milliseconds moment);
// Ends the operation before its last step; returns as run() does.
QueryResult end_operation(Database& database, const std::string& id);

}  // namespace pulse::console
