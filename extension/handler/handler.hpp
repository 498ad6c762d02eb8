// Handlers: functions of the database that run as tasks. Whose rights a handler has, and whether
// the role of a worker runs it.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

struct Handler {
  Oid function;
  Oid schema;
  Oid owner;
  bool is_definer;  // SECURITY DEFINER
  bool takes_job;   // it can be called with a job
  Oid argument;     // type: json, jsonb or pulse.claimed_job
  Oid result;       // type
};

// False when the function does not exist.
bool read_handler(Oid function, Handler* handler);

// Raises PU004.
[[noreturn]] void refuse_unfit(Oid function);

// What a role does with a handler, by what the owner of the function would gain. An owner that is a
// superuser, owns pg_pulse, or may act as the role has nothing to gain.
enum class HandlerTrust {
  kTrusted,     // it runs as any function does
  kRestricted,  // SECURITY DEFINER: it runs as its owner, as a security-restricted operation
  kRefused,     // it would run with the rights of the role
};

HandlerTrust trust_of(const Handler& handler, Oid role);

}  // namespace pulse
