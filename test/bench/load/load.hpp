// One run of bench-load: registers workers, lets them idle, sends jobs through them, and says what
// that took.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "beats.hpp"
#include "claimer.hpp"
#include "meter.hpp"
#include "producers.hpp"

namespace bench {

struct LoadOptions {
  int workers = 1;        // registered, with a session each that waits and claims
  int beating = 0;        // registered besides, that only beat
  int beat_sessions = 1;  // that the beats of all of them go through
  int beat_ms = 2000;
  double idle_seconds = 0;   // measured before any job is there
  double warm_seconds = 0;   // of jobs before the measured ones
  double seconds = 0;        // of jobs; 0: none, unless jobs says how many
  double slice_seconds = 0;  // say for each so many what was done
  std::int64_t jobs = 0;     // ends when so many have ended
  ClaimerOptions claimer;
  ProducerOptions producers;
};

class Load : private Claimer::Listener {
 public:
  explicit Load(const LoadOptions& options);
  // Prints a line of JSON.
  void run();

 private:
  struct Slice {
    std::int64_t jobs;
    std::string start;  // latencies, as JSON
  };
  void on_start(std::string_view payload) override;
  void on_end() override;

  void register_workers();
  void connect();
  void start_claimers(double spread_seconds = 0);
  void run_for(double seconds);
  void idle();
  void send_jobs();
  void finish_schedule();
  void end_slice(Moment end);
  void stop();
  void begin_phase();
  // What was done since then, as JSON.
  std::string end_phase();
  std::string latencies_json();

  LoadOptions options_;
  Loop loop_;
  Session session_;
  Meter meter_;
  Ids waiting_workers_;
  Ids all_workers_;
  std::vector<std::unique_ptr<Claimer>> claimers_;
  std::unique_ptr<Producers> producers_;
  std::unique_ptr<Beats> beats_;
  Claims claims_;
  bool are_claiming_ = false;
  std::int64_t jobs_wanted_ = 0;  // ends the loop; 0: time does

  Latencies starts_;  // from the scheduled moment of a job to the return of its claim
  Reading phase_start_;
  Claims phase_claims_;
  std::int64_t phase_beats_ = 0;
  std::int64_t phase_added_ = 0;
  std::int64_t slice_jobs_ = 0;
  Latencies slice_starts_;
  std::vector<Slice> slices_;
};

}  // namespace bench
