// C functions handle the usual case and leave every other case to an SQL function.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// Calls pulse.<name> with the arguments, and the argument types, of the running call.
Datum call_in_full(const char* name, FunctionCallInfo given);

}  // namespace pulse
