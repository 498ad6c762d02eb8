// The end of a task, out of what its minder reported.
#pragma once

#include <string_view>

#include "jobs/execution_report.hpp"
#include "minder/protocol.hpp"

namespace pulse {

// The kind of end a minder reported, with what `error` begins with. `report` is not kStarted;
// `path` is the executable's.
ExecutionEnd describe_end(const minder::Report& report, std::string_view path);

// The end of a task whose minder was killed.
ExecutionEnd describe_lost_minder();

}  // namespace pulse
