// The load of the queue proof: producers and claimers that do everything to a queue that a client
// can, and keep books about it. Each belongs to one thread; what they share is in Traffic.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <string>

#include "session.hpp"

namespace bench {

constexpr int kQueues = 50;

// Shared by all threads of one run.
class Traffic {
 public:
  Traffic();

  const std::map<std::string, int>& concurrency() const { return concurrency_; }
  std::string queue_name(int number) const { return "queue " + std::to_string(number); }

  // What claimers see: a job starts when its claim has committed, and stops before its end is sent,
  // so two jobs that overlap here overlapped in the database too.
  void start(const std::string& queue, std::int64_t id, std::int64_t token);
  void stop(const std::string& queue);

  void added(std::int64_t id);
  void completed(std::int64_t id);
  void unexpected(const std::string& error);
  std::int64_t random_added(std::mt19937* random);

  std::atomic<int> producing = 0;  // producers that are not done
  std::atomic<bool> stop_claiming = false;
  std::atomic<std::int64_t> ended = 0, failed = 0, released = 0, snoozed = 0, cancelled = 0,
                            rolled_back = 0, paused = 0, refused = 0, overlaps = 0, repeats = 0;
  // Guarded by mutex.
  std::mutex mutex;
  std::set<std::int64_t> added_ids;
  std::set<std::int64_t> completed_ids;
  std::string first_error;

 private:
  struct Occupancy {
    int most;
    std::atomic<int> running = 0;
  };
  std::map<std::string, int> concurrency_;
  std::map<std::string, Occupancy> occupancy_;
  std::set<std::pair<std::int64_t, std::int64_t>> claims_;  // guarded by mutex
  std::vector<std::int64_t> recent_;                        // guarded by mutex
};

// Adds `jobs` jobs in all ways there are; cancels, pauses and resumes in between.
void produce(Traffic* traffic, int seed, int jobs);
// Claims and ends jobs until it is told to stop. Never sweeps.
void claim_and_end(Traffic* traffic, int seed);

}  // namespace bench
