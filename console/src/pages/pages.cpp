#include "pages/pages.hpp"

namespace pulse::console {

void add_pages(Router& router) {
  add_assets(router);
  add_error_pages(router);
  add_overview_page(router);
  add_job_pages(router);
  add_job_list_pages(router);
  // Before the pages of an id: /operations/new, /flows/cancel.
  add_operation_pages(router);
  add_change_pages(router);
  add_queue_pages(router);
  add_list_pages(router);
  add_flow_pages(router);
  add_schedule_page(router);
  add_worker_page(router);
  add_rate_pages(router);
}

}  // namespace pulse::console
