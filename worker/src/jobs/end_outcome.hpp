// The outcome that the worker reports for the end of a job's code. executor.hpp has the table.
#pragma once

#include "jobs/execution_report.hpp"
#include "jobs/held_jobs.hpp"
#include "jobs/outcome.hpp"

namespace pulse {

// `reason_to_end`: why the worker has ended the code, if the worker has. `tells_output`: the log
// may show the last words of the code.
Outcome outcome_of(EndReason reason_to_end, const HeldJob& job, const ExecutionEnd& end,
                   bool tells_output);

}  // namespace pulse
