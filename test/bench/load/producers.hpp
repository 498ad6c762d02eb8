// Sessions that add jobs on a fixed schedule, whether or not the server keeps up, or without one as
// fast as it goes. A job's payload says for when it was scheduled: who waits behind a slow server
// is counted as waiting.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "link.hpp"

namespace bench {

struct ProducerOptions {
  int sessions = 0;
  double rate = 0;        // jobs per second; 0: each session adds as soon as it can
  int together = 1;       // jobs of one call
  int payload_bytes = 0;  // padding
  std::string task = "load";
};

class Producers {
 public:
  Producers(Loop* loop, const ProducerOptions& options);
  void start();
  // Adds so many more, and then no others.
  void limit(std::int64_t jobs) { limit_ = asked_ + jobs; }
  void stop() { is_stopped_ = true; }
  bool is_at_rest() const { return idle_.size() == links_.size(); }
  std::int64_t added() const { return added_; }

  // For when the job with this payload was scheduled.
  static Moment scheduled(std::string_view payload);

 private:
  bool is_done() const { return is_stopped_ || (limit_ > 0 && asked_ >= limit_); }
  void on_schedule();
  void add(Link* link, Moment scheduled);
  void on_added(Link* link);

  Loop* loop_;
  ProducerOptions options_;
  std::string padding_;
  std::vector<std::unique_ptr<Link>> links_;
  std::vector<Link*> idle_;
  std::deque<Moment> late_;  // scheduled, and no session is free
  Moment next_{};
  Clock::duration every_{};
  std::int64_t asked_ = 0;
  std::int64_t limit_ = 0;
  std::int64_t added_ = 0;
  bool is_stopped_ = true;
};

}  // namespace bench
