// The filter of the list of jobs: as an address has it, and as a form to be filled in.
#pragma once

#include "html/markup.hpp"
#include "job/job_filter.hpp"
#include "serve/form.hpp"

namespace pulse::console {

// Of an address such as /jobs?state=failed&task=mail&older=2h. Throws Failed for a duration that is
// none.
JobFilter filter_of(const Form& query);

// The same filter as an address has it.
Url with_filter(Url url, const Form& query);

// The same filter as fields of another form, which are not shown.
Markup hidden_filter(const Form& query);

Markup filter_form(const Form& query, bool with_errors);

}  // namespace pulse::console
