// bench-latency [SAMPLES]: from the moment a producer sends an add to the moment the job is in a
// worker's hands, one at a time: the next is added when the last has been completed and the worker
// waits again. Prints of each the milliseconds to the start, and to the producer's answer.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <semaphore>
#include <stdexcept>
#include <string>
#include <thread>

#include "clock.hpp"

namespace {

using bench::Clock;
using bench::ms_between;
using bench::Watcher;

constexpr auto kLongest = std::chrono::seconds(10);
const std::string kWait = "CALL pulse.wait_for_job($1, '30 s')";
const std::string kClaim = "SELECT id, token FROM pulse.claim($1)";

// Waits and claims in one round trip of two transactions, so that the claim follows in the server
// when the wait ends.
class Worker {
 public:
  explicit Worker(int jobs) : session_("latency_worker"), jobs_(jobs) {
    worker_id_ = session_.number("SELECT id FROM pulse.register_worker('latency')");
    process_ = session_.number("SELECT pg_backend_pid()");
    session_.prepare(kWait);
    session_.prepare(kClaim);
    thread_ = std::thread([this] { run(); });
  }
  ~Worker() { thread_.join(); }

  Clock::time_point started_at() {
    if (!started_.try_acquire_for(kLongest)) throw std::runtime_error("a job was never started");
    return started_at_;
  }
  void wait_for_end() { ended_.acquire(); }
  std::int64_t process() const { return process_; }

 private:
  void run() {
    try {
      for (int done = 0; done < jobs_;) done += run_next();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "bench-latency: %s\n", error.what());
      std::_Exit(1);
    }
  }

  int run_next() {
    session_.start_pipeline();
    session_.send(kWait, {worker_id_});
    session_.flush();
    session_.send(kClaim, {worker_id_});
    session_.flush();
    session_.next_rows();
    session_.end_of_flush();
    bench::Rows jobs = session_.next_rows();
    if (jobs.count() == 1) started_at_ = Clock::now();
    session_.end_of_flush();
    session_.stop_pipeline();
    if (jobs.count() == 0) return 0;
    started_.release();
    session_.run("SELECT pulse.complete($1, $2)", {jobs.number(0, 0), jobs.number(0, 1)});
    ended_.release();
    return 1;
  }

  bench::Session session_;
  int jobs_;
  std::int64_t worker_id_ = 0;
  std::int64_t process_ = 0;
  Clock::time_point started_at_;
  std::binary_semaphore started_{0};
  std::binary_semaphore ended_{0};
  std::thread thread_;
};

struct Sample {
  double start_ms;
  double answer_ms;
};

Sample sample(bench::Session* producer, Worker* worker, Watcher* watcher) {
  watcher->wait_until_waiting();
  Clock::time_point sent = Clock::now();
  producer->run("SELECT (pulse.add_job('no_op', '{\"id\": 1}')).id");
  Clock::time_point answered = Clock::now();
  Sample taken = {ms_between(sent, worker->started_at()), ms_between(sent, answered)};
  worker->wait_for_end();
  return taken;
}

}  // namespace

int main(int argc, char** argv) {
  const int samples = argc > 1 ? std::atoi(argv[1]) : 1000;
  constexpr int kWarm = 20;
  try {
    bench::Session producer("latency_producer");
    Worker worker(kWarm + samples);
    Watcher watcher(worker.process());
    for (int i = 0; i < kWarm; i++) sample(&producer, &worker, &watcher);
    for (int i = 0; i < samples; i++) {
      Sample taken = sample(&producer, &worker, &watcher);
      std::printf("%.4f %.4f\n", taken.start_ms, taken.answer_ms);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench-latency: %s\n", error.what());
    std::_Exit(1);
  }
  return 0;
}
