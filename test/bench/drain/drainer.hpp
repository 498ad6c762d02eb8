// Takes jobs of a task that does nothing until none is ready, or its portion is drained, over one
// session with the database.
// The jobs of one claim are completed in the round trip, and the transaction, of the next one.
#pragma once

#include <cstdint>
#include <string>

#include "portion.hpp"
#include "session.hpp"

namespace bench {

struct DrainOptions {
  int batch = 500;
  std::string task = "no_op";
  // One flush to disk for both, or one for each call as a client that knows no pipeline has.
  enum class Commit { kTogether, kEach } commit = Commit::kTogether;
};

struct Drained {
  std::int64_t jobs = 0;
  std::int64_t claims = 0;
  std::int64_t payload_bytes = 0;
};

class Drainer {
 public:
  Drainer(const std::string& name, const DrainOptions& options);
  // May be called again. Throws when a completion is refused: nobody else touches these jobs.
  Drained run(Portion& portion);
  void deregister();

 private:
  struct Claim {
    Ids ids;
    Ids tokens;
  };
  Claim next_claim(const Claim& done, int most);
  Claim read_claim();
  void read_completion();
  void complete_again(Ids busy, const Claim& done);

  Session session_;
  DrainOptions options_;
  std::int64_t worker_id_;
  Drained total_;
  Ids busy_;
};

}  // namespace bench
