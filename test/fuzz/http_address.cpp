// Where users want the status pages.
#include "base/http/address.hpp"

#include "target.hpp"

namespace pulse::fuzz {

void http_address(std::string_view input) {
  const std::string text(input.substr(0, input.find('\0')));
  const auto parsed = parse_http_address(text);
  if (const auto* problem = std::get_if<std::string>(&parsed)) {
    promise(problem->find(text) != std::string::npos, "a problem names the value");
    return;
  }
  const auto& address = std::get<HttpAddress>(parsed);
  const auto again = parse_http_address(address.text());
  promise(std::holds_alternative<HttpAddress>(again), "an address written again is one");
  const auto& same = std::get<HttpAddress>(again);
  promise(same.host == address.host && same.port == address.port, "and the same");
}

}  // namespace pulse::fuzz
