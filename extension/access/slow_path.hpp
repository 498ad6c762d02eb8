// The slow path: a C function handles the usual case and calls an SQL function for any other.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// Calls pulse.<name> with the arguments, and the argument types, of the running call.
Datum call_in_full(const char* name, FunctionCallInfo given);

}  // namespace pulse
