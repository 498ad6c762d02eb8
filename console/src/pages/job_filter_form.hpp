// The filter of the list of jobs: as an address, and as a form to be filled in.
#pragma once

#include "html/markup.hpp"
#include "job/action_states.hpp"
#include "job/job_filter.hpp"
#include "job/state_counts.hpp"
#include "serve/form.hpp"
#include "serve/request.hpp"

namespace pulse::console {

// The filter of an address such as /jobs?state=failed&task=mail&older=2h. Throws Failed for an
// invalid duration.
JobFilter filter_of(const Form& query);

// The same filter in the form of an address.
Url with_filter(Url url, const Form& query);

// The same filter as fields of another form, which the page does not show.
Markup hidden_filter(const Form& query);

Markup filter_form(const Form& query, bool with_errors, const Path& path);
// The same, folded up unless it has a condition.
Markup filter_section(const Form& query, bool with_errors, const Path& path = "/jobs");

// A tab for each state, with its count. `query`: the filter of the address; `listed`: how many jobs
// the list below has.
Markup state_tabs(const Form& query, const std::vector<StateCount>& counts, std::size_t listed);

// Whether any job of the list can be retried or cancelled.
bool may_change_chosen(const ActionStates& actions, const Form& query);

// A list of jobs with what may be done with the chosen ones, or with all that meet the filter.
Markup bulk_form(const ActionStates& actions, const Form& query, const Markup& list);

// Throws Failed where a client that sees no errors filters by one: it could ask for it letter by
// letter.
void refuse_hidden_errors(const Request& request, const JobFilter& filter);

}  // namespace pulse::console
