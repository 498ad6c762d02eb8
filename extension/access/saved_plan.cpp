#include "access/saved_plan.hpp"

#include "access/local_settings.hpp"
#include "server/values.hpp"

namespace pulse {
namespace {

void prepare(SavedPlan* query) {
  if (query->plan) return;
  SPIPlanPtr plan = SPI_prepare(query->text, query->count, query->types);
  if (!plan || SPI_keepplan(plan)) elog(ERROR, "could not prepare: %s", query->text);
  query->plan = plan;
}

}  // namespace

NullableDatum value_of_query(SavedPlan* query, const NullableDatum* arguments) {
  Datum values[kMaxParameters];
  char nulls[kMaxParameters];
  for (int i = 0; i < query->count; i++) {
    values[i] = arguments[i].value;
    nulls[i] = arguments[i].isnull ? 'n' : ' ';
  }
  if (SPI_connect() != SPI_OK_CONNECT) elog(ERROR, "SPI_connect failed");
  prepare(query);
  without_jit([&] {
    int done = SPI_execute_plan(query->plan, values, nulls, false, 0);
    if (done != SPI_OK_SELECT && done != SPI_OK_INSERT_RETURNING)
      elog(ERROR, "could not run: %s", query->text);
  });
  if (SPI_processed == 0) {
    SPI_finish();
    return kNull;
  }
  TupleDesc shape = SPI_tuptable->tupdesc;
  NullableDatum found;
  found.value = SPI_getbinval(SPI_tuptable->vals[0], shape, 1, &found.isnull);
  if (!found.isnull)
    found.value = SPI_datumTransfer(found.value, TupleDescAttr(shape, 0)->attbyval,
                                    TupleDescAttr(shape, 0)->attlen);
  SPI_finish();
  return found;
}

}  // namespace pulse
