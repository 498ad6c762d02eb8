// Calls that act with the rights of the extension's owner, and know which role has called. In a
// SECURITY DEFINER function the current user is the owner already. The session's user may differ
// from the caller too: a function of an application calls with the rights of the application's
// owner. Therefore the functions that ask for their caller are SECURITY INVOKER functions in C.
//
// Invariant: within such a call the current user is the owner of the called function, and
// asking_role() is the calling role. Both end with the call, also when an error ends the call.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

// The calling role of the call that acts as the owner. Outside of such a call, the role that the
// session acts as: the role of SET ROLE, or else the session's user.
Oid asking_role();

// The user of the session and the asking role, before a call acts as the owner.
struct CallerState {
  Oid user;
  int security_context;
  Oid asking_role;
};

// Acts as the owner of the called function.
CallerState begin_owner_call(FunctionCallInfo fcinfo);
void end_owner_call(const CallerState& caller);

// Runs a function body with the rights of the function's owner, and returns the result.
template <typename Run>
Datum as_owner(FunctionCallInfo fcinfo, Run run) {
  CallerState caller = begin_owner_call(fcinfo);
  volatile Datum result = 0;
  PG_TRY();
  { result = run(); }
  PG_FINALLY();
  { end_owner_call(caller); }
  PG_END_TRY();
  return result;
}

}  // namespace pulse
