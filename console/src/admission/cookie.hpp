// The cookie that a browser keeps for this server.
#pragma once

#include <string>
#include <string_view>

namespace pulse::console {

// The value of a cookie in a Cookie header; empty if it is not there.
std::string cookie_value(std::string_view header, std::string_view name);

}  // namespace pulse::console
