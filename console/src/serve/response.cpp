#include "serve/response.hpp"

#include <nlohmann/json.hpp>

#include "base/http/status.hpp"

namespace pulse::console {

Response html(std::string body, unsigned status) {
  return {.status = status, .body = std::move(body), .type = "text/html; charset=utf-8"};
}

// Texts of the database are UTF-8 where the session is UTF-8; the function replaces other bytes,
// and refuses nothing.
Response json_response(const nlohmann::json& document, unsigned status) {
  return {.status = status,
          .body = document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n',
          .type = "application/json"};
}

Response see_other(const std::string& location) {
  return {.status = http_status::kSeeOther, .headers = {{"Location", location}}};
}

}  // namespace pulse::console
