// What the server and this process use: processor time, and bytes of the write-ahead log.
#pragma once

#include <cstdint>
#include <string>

#include "loop.hpp"
#include "session.hpp"

namespace bench {

struct Reading {
  Moment moment;
  double server_cpu = 0;  // seconds of all processes of the server, those that ended included
  double client_cpu = 0;
  std::int64_t wal = 0;
};

class Meter {
 public:
  explicit Meter(Session* session);
  Reading read();

 private:
  double server_cpu() const;

  Session* session_;
  int postmaster_;
};

// Fields of JSON for what was used between two readings.
std::string used_json(const Reading& from, const Reading& to);

}  // namespace bench
