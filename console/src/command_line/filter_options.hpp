// Options that say which jobs a command is about.
#pragma once

#include "job/job_filter.hpp"
#include <CLI/CLI.hpp>

namespace pulse::console {

void add_filter_options(CLI::App& command, JobFilter& filter);

// For an option that is a duration; the option stores the interval.
CLI::Validator is_duration();

// For an option that is an id.
CLI::Validator is_id();

}  // namespace pulse::console
