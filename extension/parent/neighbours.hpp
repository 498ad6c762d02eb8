// A row of pulse.dependency has those parents of a job whose ids are neighbours.
#pragma once

#include "server/postgres.hpp"

namespace pulse {

constexpr int64 kNeighbours = 64;

inline int64 first_neighbour(int64 id) { return id & -kNeighbours; }

}  // namespace pulse
