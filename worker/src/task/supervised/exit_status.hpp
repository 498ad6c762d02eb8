// Exit status: the end of a task, from the report of its minder.
#pragma once

#include <string_view>

#include "jobs/execution_report.hpp"
#include "minder/protocol.hpp"

namespace pulse {

// The kind of end that a minder reported, with the beginning of `error`. `report` is not kStarted;
// `path` is the executable's.
ExecutionEnd describe_end(const minder::Report& report, std::string_view path);

// The end of a task whose minder was killed.
ExecutionEnd describe_lost_minder();

}  // namespace pulse
