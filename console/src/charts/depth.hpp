// The depth of the queue over time: the server of the pages remembers the overviews that it showed.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <string>

#include "base/postgres/query_result.hpp"
#include "html/chart.hpp"

namespace pulse::console {

class Depth {
 public:
  // Remembers a row of the overview. All functions are thread-safe.
  void note(const QueryResult::Row& overview);
  // Covers the ten minutes before the last row.
  Chart chart() const;

 private:
  struct Sample {
    std::int64_t slot;
    double ready;
    double running;
    double parked;
  };

  mutable std::mutex mutex_;
  std::deque<Sample> samples_;  // by slot
  std::string at_;              // the database's time of the last row
};

}  // namespace pulse::console
