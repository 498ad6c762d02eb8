// Session settings: the statement that every connection sends first, and the settings that it makes
// against all settings of the role or the database.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/postgres/statement.hpp"

namespace pulse::statements {

// The first statement of every connection says whether the backend is the one that the connection
// was started with. Behind a pooler it is another, and the statement sets nothing: another client
// would inherit the settings. A setting that the server does not have is left out.
inline constexpr Statement kSetUp{
    "set_up",
    "SELECT pg_catalog.pg_backend_pid() AS backend_pid,"
    " (SELECT pg_catalog.count(pg_catalog.set_config(s.name, s.value, false))"
    " FROM ROWS FROM (pg_catalog.unnest($2::pg_catalog.text[]),"
    " pg_catalog.unnest($3::pg_catalog.text[])) AS s(name, value)"
    " WHERE pg_catalog.int4eq(pg_catalog.pg_backend_pid(), $1::integer)"
    " AND pg_catalog.current_setting(s.name, true) IS NOT NULL) AS settings_made"};

// Removes all state of a session, also the settings that kSetUp made.
inline constexpr Statement kDiscard{"discard", "DISCARD ALL"};

// The settings that a session of the worker needs, name and value, against all settings of the role
// or the database.
using SessionSettings = std::vector<std::pair<std::string, std::string>>;

// Of each session: claims and sweeps need their isolation level, and no clock of the server may end
// a session that waits. A standby stays read-only all the same.
inline SessionSettings shared_settings() {
  return {{"default_transaction_isolation", "read committed"},
          {"default_transaction_read_only", "off"},
          {"default_transaction_deferrable", "off"},
          {"statement_timeout", "0"},
          {"transaction_timeout", "0"},
          {"idle_in_transaction_session_timeout", "0"},
          {"idle_session_timeout", "0"}};
}

// Of a session in which no code of the application runs: arrays with NULL are sent, notices are
// read, and no statement is worth a compilation or the start of another process.
inline SessionSettings own_settings(const char* lock_timeout = "0") {
  SessionSettings settings = shared_settings();
  settings.insert(settings.end(), {{"lock_timeout", lock_timeout},
                                   {"array_nulls", "on"},
                                   {"client_min_messages", "notice"},
                                   {"jit", "off"},
                                   {"max_parallel_workers_per_gather", "0"}});
  return settings;
}

}  // namespace pulse::statements
