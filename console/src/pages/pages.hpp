// The pages of `pulse serve`.
#pragma once

#include "serve/router.hpp"

namespace pulse::console {

void add_pages(Router& router);

// The parts of add_pages(), by subject.
void add_assets(Router& router);
void add_overview_page(Router& router);
void add_job_pages(Router& router);
void add_job_list_pages(Router& router);
void add_operation_pages(Router& router);
void add_queue_pages(Router& router);
void add_list_pages(Router& router);
void add_flow_pages(Router& router);
void add_schedule_page(Router& router);
void add_worker_page(Router& router);
void add_rate_pages(Router& router);
void add_change_pages(Router& router);
void add_error_pages(Router& router);

}  // namespace pulse::console
