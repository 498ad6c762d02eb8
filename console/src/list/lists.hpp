// The lists of the console: each is a query and its columns, for the terminal and for the page.
#pragma once

#include <string>

#include "output/columns.hpp"

namespace pulse::console {

// The status of a row of pulse.worker_status for a person: the overview counts a worker that the
// next sweep finds lost as silent.
#define PULSE_WORKER_STATUS "CASE WHEN silent THEN 'silent' ELSE status END AS status"

struct List {
  const char* sql;
  Columns columns;
  // The query of one row, which $1 names; only lists whose rows have pages.
  const char* one = nullptr;
  int most = 0;  // how many rows the query returns at most; 0: no number, or a parameter has it
};

// Tells a reader that the list may end before the last row; empty where the list does not.
std::string word_of_end(const List& list, const QueryResult& rows);

const List& overview_list();  // one row
const List& task_list();
const List& queue_list();
const List& worker_list();  // $1: workers that ended within a day, too
const List& schedule_list();
const List& flow_list();       // $1: below this id, $2: how many
const List& operation_list();  // $1: below this id, $2: how many
const List& running_list();
const List& recovery_list();  // $1: how many
// $1 to $8: the conditions of a JobFilter, $9: how many, $10: of how many failures at most
const List& failure_list();
const List& finding_list();

constexpr int kMaxFailures = 20000;

// Whether the search for failures stopped at a bound, and the clause that tells a reader so.
bool is_cut(const QueryResult& failures);
extern const char* const kFailuresAreCut;

}  // namespace pulse::console
