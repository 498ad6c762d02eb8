#include "service/audit.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "base/http/status.hpp"

namespace pulse::console {
namespace {

// A longer path is cut, so that a stranger writes no more of the log than this in a line.
constexpr std::size_t kMaxPath = 200;
// Of a client without the right: unknown tokens, missing rights, other names, too many requests.
constexpr std::array kRefusals{401U, 403U, 421U, 429U};

std::string_view event_of(const Request& request, unsigned status) {
  if (std::find(kRefusals.begin(), kRefusals.end(), status) != kRefusals.end()) return "refused";
  if (!request.is_change()) return {};
  if (status == http_status::kSeeOther && request.path == "/login") return "signed_in";
  if (status == http_status::kSeeOther && request.path == "/logout") return "signed_out";
  return "changed";
}

// The addresses that proxies report for the client: the last words come from the nearest proxy.
std::optional<std::string> forwarded_for(const Request& request) {
  constexpr std::size_t kMaxAddresses = 200;
  const std::string& said = request.header("x-forwarded-for");
  if (said.empty()) return std::nullopt;
  return said.substr(said.size() - std::min(said.size(), kMaxAddresses));
}

}  // namespace

std::optional<std::string> name_in_log(const std::string& node) {
  return node.empty() ? std::nullopt : std::optional(node);
}

void write_audit(Log& log, const Request& request, unsigned status) {
  const std::string_view event = event_of(request, status);
  if (event.empty()) return;
  log.write(event == "refused" ? LogLevel::warning : LogLevel::info, event,
            {{"database", name_in_log(request.node)},
             {"token", request.access.token},
             {"method", request.method},
             {"path", request.path.substr(0, kMaxPath)},
             {"status", std::int64_t{status}},
             {"address", request.http.address},
             {"forwarded_for", forwarded_for(request)}});
}

}  // namespace pulse::console
