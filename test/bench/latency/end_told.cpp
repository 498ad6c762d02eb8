// bench-end-told [SAMPLES]: from the moment a worker sends the COMMIT of a job's end to the return
// of the call that waits for it, one at a time: the job ends when its caller waits. Prints of each
// the milliseconds without a flush to disk, and with one.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <semaphore>
#include <stdexcept>
#include <thread>

#include "clock.hpp"

namespace {

using bench::Clock;

constexpr auto kLongest = std::chrono::seconds(10);

// Adds a job, waits for its end, and tells when the wait returned; so many times.
class Caller {
 public:
  explicit Caller(int calls) : session_("end_told_caller"), calls_(calls) {
    process_ = session_.number("SELECT pg_backend_pid()");
    thread_ = std::thread([this] { run(); });
  }
  ~Caller() { thread_.join(); }

  std::int64_t process() const { return process_; }
  Clock::time_point returned_at() {
    if (!returned_.try_acquire_for(kLongest)) throw std::runtime_error("a call never returned");
    return returned_at_;
  }
  void go_on() { go_on_.release(); }

 private:
  void run() {
    try {
      for (int i = 0; i < calls_; i++) call();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "bench-end-told: %s\n", error.what());
      std::_Exit(1);
    }
  }
  void call() {
    std::int64_t job = session_.number("SELECT (pulse.add_job('no_op')).id");
    session_.run("CALL pulse.wait_for_end(ARRAY[$1::bigint], '30 s')", {job});
    returned_at_ = Clock::now();
    returned_.release();
    go_on_.acquire();
  }

  bench::Session session_;
  int calls_;
  std::int64_t process_ = 0;
  Clock::time_point returned_at_;
  std::binary_semaphore returned_{0};
  std::binary_semaphore go_on_{0};
  std::thread thread_;  // last, because it uses the others
};

class Ender {
 public:
  Ender() : session_("end_told_worker") {
    worker_id_ = session_.number("SELECT id FROM pulse.register_worker('end_told')");
    session_.prepare("COMMIT");
  }

  // Ends the job that is ready, and returns when it has sent the COMMIT.
  Clock::time_point end_job(bool flushes) {
    bench::Rows jobs = session_.run("SELECT id, token FROM pulse.claim($1)", {worker_id_});
    if (jobs.count() != 1) throw std::runtime_error("no job is ready");
    session_.run("BEGIN");
    if (!flushes) session_.run("SET LOCAL synchronous_commit = off");
    session_.run("SELECT pulse.complete($1, $2)", {jobs.number(0, 0), jobs.number(0, 1)});
    Clock::time_point sent = Clock::now();
    session_.run("COMMIT");
    return sent;
  }

 private:
  bench::Session session_;
  std::int64_t worker_id_ = 0;
};

double sample(Caller* caller, Ender* ender, bench::Watcher* watcher, bool flushes) {
  watcher->wait_until_waiting();
  Clock::time_point sent = ender->end_job(flushes);
  double told_ms = bench::ms_between(sent, caller->returned_at());
  caller->go_on();
  return told_ms;
}

}  // namespace

int main(int argc, char** argv) {
  const int samples = argc > 1 ? std::atoi(argv[1]) : 1000;
  constexpr int kWarm = 20;
  try {
    Ender ender;
    Caller caller(2 * (kWarm + samples));
    bench::Watcher watcher(caller.process());
    for (int i = 0; i < kWarm + samples; i++) {
      double unflushed = sample(&caller, &ender, &watcher, false);
      double flushed = sample(&caller, &ender, &watcher, true);
      if (i >= kWarm) std::printf("%.4f %.4f\n", unflushed, flushed);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench-end-told: %s\n", error.what());
    std::_Exit(1);
  }
  return 0;
}
