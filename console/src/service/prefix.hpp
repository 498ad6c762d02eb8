// The path prefix that a proxy has put this server below.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/http/message.hpp"

namespace pulse::console {

// Returns the target of the request as the routes spell it: without the prefix, where the proxy
// passes the path unchanged, and the same target where the proxy has taken the prefix away already.
// A target that could be either counts as unchanged, unless a header X-Forwarded-Prefix tells that
// the proxy took the prefix.
// `is_known`: whether this server has a page at a path.
using IsKnown = std::function<bool(std::string_view path)>;
std::string target_within(const std::string& prefix, const IsKnown& is_known,
                          const HttpRequest& request);

}  // namespace pulse::console
