// The responses of handlers.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/http/message.hpp"

namespace pulse::console {

using Response = HttpResponse;

Response html(std::string body, unsigned status = 200);
Response json_response(const nlohmann::json& document, unsigned status = 200);
// To be fetched with GET: after a form was sent.
Response see_other(const std::string& location);

}  // namespace pulse::console
