// A query of ours that a session plans once, for what is left to SQL.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

constexpr int kMaxParameters = 6;

struct SavedPlan {
  const char* text;
  int count;
  Oid types[kMaxParameters];
  SPIPlanPtr plan;
};

// Connects to SPI and runs it, a SELECT. `nulls` as SPI has them, or NULL.
void begin_saved_plan(SavedPlan* query, Datum* values, const char* nulls);

// The same, with the rows at hand for `use`, which gets them and their number.
template <typename Use>
void run_saved_plan(SavedPlan* query, Datum* values, const char* nulls, Use use) {
  begin_saved_plan(query, values, nulls);
  use(SPI_tuptable->vals, SPI_processed);
  SPI_finish();
}

}  // namespace pulse
