// What went wrong, as RFC 9457 has it.
#pragma once

#include <string>

#include "database/database.hpp"
#include "serve/response.hpp"

namespace pulse::console {

struct Problem {
  unsigned status = 500;
  std::string title = {};     // of all problems of this kind
  std::string detail = {};    // of this one
  std::string sqlstate = {};  // empty: the server's own
  std::string hint = {};      // the way out
  bool is_guess = false;      // a token or cookie was shown that is not known
};

// Thrown by handlers and what they call; the router answers it.
class Failed : public std::runtime_error {
 public:
  explicit Failed(Problem problem)
      : std::runtime_error(problem.detail), problem(std::move(problem)) {}

  const Problem problem;
};

[[noreturn]] void refuse(unsigned status, std::string detail, std::string hint = "");

// What a refusal of the database means to a client.
Problem problem_of(const SqlError& error);
// Why there is no session is not for clients: it names hosts, files and roles.
inline constexpr const char* kUnreachable = "the database cannot be reached";
Problem unreachable_problem();

// The title of a status that has no other: Not Found.
std::string title_of(unsigned status);

// application/problem+json.
Response problem_response(const Problem& problem);

}  // namespace pulse::console
