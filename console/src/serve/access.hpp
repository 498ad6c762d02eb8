// The rights of a client, and the needs of a route.
#pragma once

#include <string>

namespace pulse::console {

// What a route needs of its clients.
enum class Need {
  nothing,  // any client: the request gets no session of the database
  read,     // any client of a server without tokens; otherwise a client with a token
  act,      // a client with a token; the database decides by the role of the token
};

struct Access {
  std::string token = {};    // name of the token, for the record; empty: the client showed no token
  std::string hash = {};     // of the token
  std::string role = {};     // of the database; empty: the role of the server's own session
  std::string csrf = {};     // the value that forms send as field csrf; empty: not signed in with a
                             // browser
  bool is_operator = false;  // the role may change jobs, so a page may offer changes
  bool reads_jobs = false;   // the role may read jobs beside their documents

  bool has_token() const { return !token.empty(); }
  // Payloads, errors and results are not for clients without a token.
  bool sees_payloads() const { return has_token(); }
};

}  // namespace pulse::console
