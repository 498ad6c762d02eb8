// What a client may see and do, and what a route asks of its clients.
#pragma once

#include <string>

namespace pulse::console {

// What a route asks of its clients.
enum class Need {
  nothing,  // any client: no session of the database is lent
  look,     // any client of a server without tokens; otherwise one with a token
  act,      // one with a token; the database decides what its role may do
};

struct Access {
  std::string token = {};    // its name, for the record; empty: none was shown
  std::string hash = {};     // of the token
  std::string role = {};     // of the database; empty: that of the server's own session
  std::string csrf = {};     // what forms send as field csrf; empty: not signed in with a browser
  bool is_operator = false;  // the role may change jobs, so a page may offer that
  bool reads_jobs = false;   // the role may read jobs beside their documents

  bool has_token() const { return !token.empty(); }
  // Payloads, errors and results are not for clients without a token.
  bool sees_payloads() const { return has_token(); }
};

}  // namespace pulse::console
