// How long something took, many times.
#pragma once

#include <string>
#include <vector>

#include "loop.hpp"

namespace bench {

class Latencies {
 public:
  // Forgets what was, and heeds only what was due from this moment on.
  void begin(Moment moment);
  // Something that was due then has just happened.
  void add(Moment due);
  // An object of JSON: how many, and the milliseconds of half, 99 %, 99.9 % and all of them.
  std::string json();

 private:
  double at_most(double share) const;
  Moment begin_{};
  std::vector<double> milliseconds_;
};

}  // namespace bench
