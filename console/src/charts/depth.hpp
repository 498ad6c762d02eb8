// How deep the queue was while it was looked at: the server of the pages remembers what it showed.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <string>

#include "database/query_result.hpp"
#include "html/chart.hpp"

namespace pulse::console {

class Depth {
 public:
  // Of a row of the overview. Thread-safe, as all of it.
  void note(const QueryResult::Row& overview);
  // Of the last ten minutes before the last one that was noted.
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
  std::string at_;              // of the last one, as the database tells the time
};

}  // namespace pulse::console
