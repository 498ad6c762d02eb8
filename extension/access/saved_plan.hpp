// A query of the extension that a session plans once, for work that SQL does.
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

// Connects to SPI and runs the query, a SELECT. `nulls` is an array as SPI defines it, or NULL.
void begin_saved_plan(SavedPlan* query, Datum* values, const char* nulls);

// Runs the query and calls use(rows, count) before it disconnects from SPI.
template <typename Use>
void run_saved_plan(SavedPlan* query, Datum* values, const char* nulls, Use use) {
  begin_saved_plan(query, values, nulls);
  use(SPI_tuptable->vals, SPI_processed);
  SPI_finish();
}

}  // namespace pulse
