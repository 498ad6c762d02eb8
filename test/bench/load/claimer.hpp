// A worker as the contract wants it: it waits, claims, and completes what it ran in the round trip,
// and the transaction, of its next claim. Its jobs do nothing, or fail.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>

#include "link.hpp"

namespace bench {

struct ClaimerOptions {
  int batch = 1;
  // Every other job fails: at its first attempt, to be retried at once, or for good.
  enum class Failing { kNone, kRetried, kForGood } failing = Failing::kNone;
};

// Of all claimers together.
struct Claims {
  std::int64_t left = std::numeric_limits<std::int64_t>::max() / 2;  // jobs that may be claimed yet
  std::int64_t jobs = 0;                                             // ended, durably
  std::int64_t failures = 0;
  std::int64_t claims = 0;
  std::int64_t empty_claims = 0;
};

class Claimer {
 public:
  struct Listener {
    virtual ~Listener() = default;
    virtual void on_start(std::string_view payload) = 0;
    virtual void on_end() = 0;
  };

  Claimer(Loop* loop, std::int64_t worker_id, const ClaimerOptions& options, Claims* total,
          Listener* listener);
  void start() { claim(); }
  // Ends what it holds and claims no more, as it does when no more may be claimed.
  void stop() { is_stopping_ = true; }
  // Whether it holds nothing and asks for nothing but a wake-up.
  bool is_at_rest() const { return is_at_rest_; }

 private:
  struct Held {
    Ids done, done_tokens, failed, failed_tokens;
  };
  void claim();
  void wait();
  void on_answer(std::vector<Rows>& rows, const Held& ended);
  void read_outcomes(const Rows& rows, const Ids& ids, const Ids& tokens, Ids* busy,
                     Ids* busy_tokens);
  void take(const Rows& rows, std::int64_t asked);
  bool fails(std::int64_t id, std::int64_t attempts) const;

  Link link_;
  std::int64_t worker_id_;
  std::int64_t wait_ms_;  // of the next wait
  ClaimerOptions options_;
  Claims* total_;
  Listener* listener_;
  Held held_;
  bool is_stopping_ = false;
  bool is_at_rest_ = true;
};

}  // namespace bench
