// The path prefix that a proxy has put this server below.
#pragma once

#include <string>
#include <string_view>

#include "base/http/message.hpp"
#include "serve/router.hpp"

namespace pulse::console {

// The target of the request as the routes have it: without the prefix, where the proxy passes the
// path as it came, and the same where the proxy has taken the prefix away already. A target that
// could be either is the first, unless a header X-Forwarded-Prefix tells that the proxy took it.
std::string target_within(const std::string& prefix, const Router& router,
                          const HttpRequest& request);

}  // namespace pulse::console
