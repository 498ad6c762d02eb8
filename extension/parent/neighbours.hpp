// Parents: a row of pulse.dependency has the parents of a job whose ids are neighbours. Ids with
// the same first_neighbour() are neighbours.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

constexpr int64 kNeighbours = 64;

inline int64 first_neighbour(int64 id) { return id & -kNeighbours; }

}  // namespace pulse
