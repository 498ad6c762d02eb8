// The statement that reports outcomes of one kind, with its parameters.
#pragma once

#include <vector>

#include "base/postgres/statement.hpp"
#include "jobs/execution_report.hpp"
#include "jobs/outcome.hpp"

namespace pulse {

// At least one, all of the same kind; a snooze alone.
Call call_for(const std::vector<const Outcome*>& outcomes);

Params progress_params(ClaimKey claim, const TaskProgress& progress);

// In the log.
const char* name_of(const Outcome& outcome);

// The values were refused, not the moment: the same statement can never succeed.
bool is_about_data(const std::string& sqlstate);

// Makes `outcome` an outcome that can be stored and that tells why; false where there is
// nothing to leave out.
bool make_storable(Outcome& outcome, const std::string& why);

}  // namespace pulse
