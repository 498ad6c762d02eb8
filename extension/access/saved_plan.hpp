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

// Runs the query under a new snapshot: a SELECT of one value, or an INSERT that returns one value.
// The value is in the present memory context; NULL without a row.
NullableDatum value_of_query(SavedPlan* query, const NullableDatum* arguments);

}  // namespace pulse
