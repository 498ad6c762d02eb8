// Handlers: functions of the database that run as tasks. Owns the decision whose rights a handler
// has, and whether the role of a worker runs a handler.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

struct Handler {
  Oid function;
  Oid schema;
  Oid owner;
  bool is_definer;  // SECURITY DEFINER
  bool takes_job;   // a worker can call the function with a job
  Oid argument;     // type: json, jsonb or pulse.claimed_job
  Oid result;       // type
};

// Reads the function from the catalog. False when the function does not exist.
bool read_handler(Oid function, Handler* handler);

// Raises PU004: the function cannot take a job.
[[noreturn]] void refuse_unfit(Oid function);

// How a role runs a handler, by the rights that the owner of the function would gain. An owner that
// is a superuser, owns pg_pulse, or may act as the role gains no right.
enum class HandlerTrust {
  kTrusted,  // the handler runs like any function
  // SECURITY DEFINER: the handler runs as its owner, as a security-restricted operation
  kRestricted,
  kRefused,  // the handler would run with the rights of the role
};

HandlerTrust trust_of(const Handler& handler, Oid role);

}  // namespace pulse
