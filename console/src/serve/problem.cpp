#include "serve/problem.hpp"

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/http/status.hpp"
#include "base/postgres/sqlstate.hpp"

namespace pulse::console {
namespace {

struct Meaning {
  std::string_view sqlstate;  // or the first two characters
  unsigned status;
  const char* title;
};

// The first that fits.
constexpr std::array kMeanings{
    Meaning{sqlstate::kClaimIsOver, 409, "Claim lost"},
    Meaning{sqlstate::kWorkerIsLost, 410, "Worker lost"},
    Meaning{sqlstate::kSettingsDisagree, 422, "Settings contradict each other"},
    Meaning{sqlstate::kBadValue, 422, "Value out of range"},
    Meaning{sqlstate::kNotFound, 404, "Not found"},
    Meaning{sqlstate::kClaimsAreOff, 503, "Claims are off"},
    Meaning{sqlstate::kMustNotRunAgain, 409, "The job must not run again"},
    Meaning{sqlstate::kNoPrivilege, 403, "Not allowed"},
    Meaning{sqlstate::kReadOnly, 503, "The database is read-only"},
    Meaning{sqlstate::kOtherVersion, 503, "No pg_pulse, or another version"},
    Meaning{sqlstate::kNoFunction, 503, "No pg_pulse, or another version"},
    Meaning{sqlstate::kNoTable, 503, "No pg_pulse, or another version"},
    Meaning{sqlstate::kNoSchema, 503, "No pg_pulse, or another version"},
    Meaning{sqlstate::kLockNotAvailable, 503, "Busy"},
    Meaning{sqlstate::kQueryCanceled, 503, "It took too long"},
    Meaning{"22", 422, "Value not understood"},
    Meaning{"23", 422, "Value not accepted"},
    Meaning{"40", 503, "Busy"},
    Meaning{"53", 503, "The database is short of resources"},
    Meaning{"54", 422, "Value too large"},
    Meaning{"57", 503, "The database is not available"},
    Meaning{"58", 503, "The database is not available"},
};

std::string with_detail(const SqlError& error) {
  if (error.detail.empty()) return error.message;
  return error.message + ": " + error.detail;
}

// A server that does not preload pg_pulse has no hint for a missing right.
std::string hint_of(const SqlError& error) {
  if (!error.hint.empty() || error.sqlstate != sqlstate::kNoPrivilege) return error.hint;
  return "The owner of pg_pulse grants rights to the role of the token: grant_producer to add "
         "jobs, grant_worker to run them, grant_observer to read, grant_operator to change them, "
         "grant_scheduler for schedules.";
}

}  // namespace

std::string title_of(unsigned status) {
  static const std::map<unsigned, const char*> kTitles{
      {400, "Bad request"},
      {401, "Not signed in"},
      {403, "Not allowed"},
      {404, "Not found"},
      {405, "Method not allowed"},
      {408, "Too slow"},
      {409, "Conflict"},
      {410, "Gone"},
      {413, "Too large"},
      {415, "Unsupported content type"},
      {421, "Misdirected request"},
      {422, "Value not accepted"},
      {429, "Too many"},
      {500, "Fault"},
      {501, "Not known here"},
      {503, "Not available"},
  };
  const auto found = kTitles.find(status);
  return found == kTitles.end() ? "Problem" : found->second;
}

void refuse(unsigned status, std::string detail, std::string hint) {
  throw Failed({status, title_of(status), std::move(detail), "", std::move(hint)});
}

Problem problem_of(const SqlError& error) {
  for (const Meaning& meaning : kMeanings) {
    if (error.sqlstate.starts_with(meaning.sqlstate)) {
      return {meaning.status, meaning.title, with_detail(error), error.sqlstate, hint_of(error)};
    }
  }
  return {http_status::kInternalError, title_of(http_status::kInternalError), with_detail(error),
          error.sqlstate, error.hint};
}

Problem unreachable_problem() {
  return {http_status::kUnavailable, "No database", kUnreachable, "",
          "Try again: the server goes on trying, too. Its log has the reason."};
}

Response problem_response(const Problem& problem) {
  nlohmann::json document{
      {"type", "about:blank"},
      {"title", problem.title.empty() ? title_of(problem.status) : problem.title},
      {"status", problem.status},
      {"detail", problem.detail}};
  if (!problem.sqlstate.empty()) {
    document["type"] = "urn:pg_pulse:sqlstate:" + problem.sqlstate;
    document["sqlstate"] = problem.sqlstate;
  }
  if (!problem.hint.empty()) document["hint"] = problem.hint;
  Response response = json_response(document, problem.status);
  response.type = "application/problem+json";
  return response;
}

}  // namespace pulse::console
