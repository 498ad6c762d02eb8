// One job in full: its values, why it waits, and the attempts as a timeline.
#pragma once

#include <string>

#include "database/database.hpp"
#include "output/columns.hpp"
#include "output/style.hpp"

namespace pulse::console {

struct JobPage {
  QueryResult job;  // one row
  QueryResult reasons;
  QueryResult attempts;
  std::string node = {};  // the NAME of the database, where the reader asked several
};

// Of the row about the job itself.
const Columns& job_columns();

// Throws as Database::query does; an unknown job is refused.
JobPage read_job_page(Database& database, const std::string& id);

std::string job_page_text(const JobPage& page, const Style& style);
std::string job_page_json(const JobPage& page);

}  // namespace pulse::console
