// A query of ours that a session plans once, for what is left to SQL.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

constexpr int kMostParameters = 6;

struct KeptQuery {
  const char* text;
  int count;
  Oid types[kMostParameters];
  SPIPlanPtr plan;
};

// Of a type that gets another identity with each installation.
void set_parameter_type(KeptQuery* query, int parameter, Oid type);

// Connects to SPI and runs it, a SELECT. `nulls` as SPI has them, or NULL.
void begin_kept_query(KeptQuery* query, Datum* values, const char* nulls);

// The same, with the rows at hand for `use`, which gets them and their number.
template <typename Use>
void run_kept_query(KeptQuery* query, Datum* values, const char* nulls, Use use) {
  begin_kept_query(query, values, nulls);
  use(SPI_tuptable->vals, SPI_processed);
  SPI_finish();
}

// The same, handing its rows on.
void put_kept_rows(KeptQuery* query, Datum* values, const char* nulls, Tuplestorestate* results);

}  // namespace pulse
