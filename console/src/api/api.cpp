#include "api/api.hpp"

#include "api/routes.hpp"

namespace pulse::console {

Response document_in(const QueryResult& rows, unsigned status) {
  return {.status = status, .body = rows[0].text("document") + '\n', .type = "application/json"};
}

void add_api(Router& router, const std::string& address) {
  add_job_routes(router);
  add_worker_routes(router);
  add_metrics_route(router);
  add_openapi_route(router, address);
}

}  // namespace pulse::console
