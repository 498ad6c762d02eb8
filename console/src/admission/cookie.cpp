#include "admission/cookie.hpp"

#include <algorithm>

#include "admission/digest.hpp"

namespace pulse::console {

// Lax: a link on another site leads a signed-in visitor to the page. Changes come from forms, whose
// page has to prove itself besides.
CookieKind cookie_kind(const Origin& origin, const std::string& host) {
  const std::string attributes = "; Path=/; HttpOnly; SameSite=Lax";
  if (origin.is_given()) {
    constexpr std::size_t kNameDigits = 16;
    const std::string name = "pulse-" + sha256(origin.address()).substr(0, kNameDigits);
    if (!origin.is_secure()) return {name, attributes};
    return {"__Host-" + name, attributes + "; Secure"};
  }
  const std::size_t last = host.find_last_not_of("0123456789");
  const bool has_port = last != std::string::npos && host[last] == ':';
  return {has_port ? "pulse_" + host.substr(last + 1) : "pulse", attributes};
}

std::string cookie_value(std::string_view header, std::string_view name) {
  while (!header.empty()) {
    std::string_view entry = header.substr(0, header.find(';'));
    header.remove_prefix(std::min(header.size(), entry.size() + 1));
    entry.remove_prefix(std::min(entry.find_first_not_of(' '), entry.size()));
    const std::size_t equals = entry.find('=');
    if (equals == std::string_view::npos || entry.substr(0, equals) != name) continue;
    return std::string(entry.substr(equals + 1));
  }
  return {};
}

}  // namespace pulse::console
