// Server: tells the planner how many rows a table of the schema pulse has at least.
#pragma once

namespace pulse {

// Installs the planner's hook for tables; called once, from _PG_init. A library that is not
// preloaded tells the planner from the first function in C on.
void expect_rows();

}  // namespace pulse
