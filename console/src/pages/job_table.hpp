// The table of jobs of a page: what the pages of one database and the pages of all nodes share.
#pragma once

#include "job/job_search.hpp"
#include "pages/list_page.hpp"

namespace pulse::console {

// The layout of kFoundColumns for a table of these rows: without the fields that the client may not
// see, and without columns that would say the same in each row. Links of jobs lead to /jobs/ID.
TableLayout jobs_layout(const Request& request, const QueryResult& rows);

// The search of the address of /jobs, and of /failed, without a place. Throws Failed for a filter
// that the client may not use.
JobSearch jobs_search(const Request& request);
JobSearch failed_search(const Request& request);

// Links to the first page, the newest jobs or ends, and to the next page; empty where there is
// none.
Markup page_links(const Url& first, const std::optional<Url>& next, bool is_first);

}  // namespace pulse::console
