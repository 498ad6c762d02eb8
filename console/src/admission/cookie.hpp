// The cookie that a browser keeps for this server.
#pragma once

#include <string>
#include <string_view>

#include "serve/origin.hpp"

namespace pulse::console {

// The cookie's name and the attributes of each browser's copy. `host`: the header Host. A cookie is
// for all ports of a host and for all paths, so the name tells whose cookie it is: by the hash of
// the address that the server was given, else by the port. Browsers take the name __Host-… from
// this host alone, over TLS, for the path / (RFC 6265bis).
struct CookieKind {
  std::string name;
  std::string attributes;
};
CookieKind cookie_kind(const Origin& origin, const std::string& host);

// The value of a cookie in a Cookie header; empty without the cookie.
std::string cookie_value(std::string_view header, std::string_view name);

}  // namespace pulse::console
