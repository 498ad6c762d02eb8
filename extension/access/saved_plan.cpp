#include "access/saved_plan.hpp"

namespace pulse {
namespace {

void prepare(SavedPlan* query) {
  if (query->plan) return;
  SPIPlanPtr plan = SPI_prepare(query->text, query->count, query->types);
  if (!plan || SPI_keepplan(plan)) elog(ERROR, "could not prepare: %s", query->text);
  query->plan = plan;
}

}  // namespace

void begin_saved_plan(SavedPlan* query, Datum* values, const char* nulls) {
  if (SPI_connect() != SPI_OK_CONNECT) elog(ERROR, "SPI_connect failed");
  prepare(query);
  if (SPI_execute_plan(query->plan, values, nulls, false, 0) != SPI_OK_SELECT)
    elog(ERROR, "could not run: %s", query->text);
}

}  // namespace pulse
