// Where the status pages are served: ADDRESS:PORT.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

namespace pulse {

struct HttpAddress {
  std::string host = "127.0.0.1";  // numeric; IPv6 without brackets
  std::uint16_t port = 0;          // 0: any free port

  std::string text() const;  // IPv6 in brackets
  bool is_ipv6() const { return host.find(':') != std::string::npos; }
};

// A port alone, or behind an empty address, is a port of the loopback. Otherwise the fault of the
// text.
std::variant<HttpAddress, std::string> parse_http_address(const std::string& text);

}  // namespace pulse
