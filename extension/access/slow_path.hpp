// Fast functions do what is usual in C and leave everything else to a function in SQL.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// Calls the function of schema pulse of this name, with the arguments of the one that is running
// and of the same types.
Datum call_in_full(const char* name, FunctionCallInfo given);

}  // namespace pulse
