#include "base/http/address.hpp"

#include <arpa/inet.h>

#include <array>
#include <optional>

#include "base/text/parse_number.hpp"

namespace pulse {
namespace {

bool is_numeric(int family, const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  return inet_pton(family, host.c_str(), bytes.data()) == 1;
}

}  // namespace

std::string HttpAddress::text() const {
  const std::string place = is_ipv6() ? '[' + host + ']' : host;
  return place + ':' + std::to_string(port);
}

std::variant<HttpAddress, std::string> parse_http_address(const std::string& text) {
  const std::string problem =
      '\'' + text + "' is not ADDRESS:PORT, such as 127.0.0.1:9187, [::1]:9187 or 9187";
  const std::size_t colon = text.rfind(':');
  const auto port =
      parse_number<std::uint16_t>(colon == std::string::npos ? text : text.substr(colon + 1));
  if (!port) return problem;
  HttpAddress address;
  address.port = *port;
  std::string host = colon == std::string::npos ? std::string() : text.substr(0, colon);
  if (host.empty()) return address;
  if (host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
    if (!is_numeric(AF_INET6, host)) return problem;
  } else if (!is_numeric(AF_INET, host)) {
    return problem;
  }
  address.host = std::move(host);
  return address;
}

}  // namespace pulse
