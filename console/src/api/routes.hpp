// The parts of the API.
#pragma once

#include "serve/router.hpp"

namespace pulse::console {

// The column `document` of the only row, which is JSON.
Response document_in(const QueryResult& rows, unsigned status = 200);

void add_job_routes(Router& router);
void add_worker_routes(Router& router);
void add_metrics_route(Router& router);
void add_openapi_route(Router& router, const std::string& address);

}  // namespace pulse::console
