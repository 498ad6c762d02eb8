// A failure of a request, in the form of RFC 9457.
#pragma once

#include <string>

#include "database/database.hpp"
#include "serve/response.hpp"

namespace pulse::console {

struct Problem {
  unsigned status = 500;
  std::string title = {};     // of all problems of this kind
  std::string detail = {};    // of this problem
  std::string sqlstate = {};  // empty: a problem of pulse serve's own
  std::string hint = {};      // the way out
  bool is_guess = false;      // the client showed an unknown token or cookie
};

// Handlers and the functions that handlers call throw Failed; the router answers.
class Failed : public std::runtime_error {
 public:
  explicit Failed(Problem problem)
      : std::runtime_error(problem.detail), problem(std::move(problem)) {}

  const Problem problem;
};

[[noreturn]] void refuse(unsigned status, std::string detail, std::string hint = "");

// The meaning of a refusal of the database to a client.
Problem problem_of(const SqlError& error);
// The reason of a missing session is not for clients: it names hosts, files and roles.
inline constexpr const char* kUnreachable = "the database cannot be reached";
Problem unreachable_problem();

// The title of a status without a title of its own: Not Found.
std::string title_of(unsigned status);

// application/problem+json.
Response problem_response(const Problem& problem);

}  // namespace pulse::console
