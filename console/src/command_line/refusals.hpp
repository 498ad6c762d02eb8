// The meaning of a refusal to the user: a line for people, and the status to end with.
#pragma once

#include "command_line/exit_status.hpp"
#include "database/database.hpp"

namespace pulse::console {

// Tells on standard error.
ExitStatus tell_refusal(const SqlError& error, Database& database);
ExitStatus tell_refusal_of_node_table(const SqlError& error, const Database& database);
ExitStatus report_usage(const std::string& problem);
ExitStatus report_unreachable(const std::string& reason);

}  // namespace pulse::console
