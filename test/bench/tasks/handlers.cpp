// Handlers that do nothing, one job at a time or many: bench-handlers single|batch [MOST] [THREADS]
// runs until no job is ready; `defaults` is one handler and no option set.
#include <cstdio>
#include <cstdlib>
#include <pulse/worker.hpp>
#include <string>

namespace {

// As a real handler would, it looks at what it was given.
bool has_payload(const pg_pulse::Job& job) { return job.payload() != "null"; }

pg_pulse::Outcome run_one(pg_pulse::Job& job) {
  return has_payload(job) ? pg_pulse::Outcome::success() : pg_pulse::Outcome::failure("empty");
}

std::vector<pg_pulse::Outcome> run_many(std::span<pg_pulse::Job> jobs) {
  std::vector<pg_pulse::Outcome> outcomes;
  outcomes.reserve(jobs.size());
  for (pg_pulse::Job& job : jobs) outcomes.push_back(run_one(job));
  return outcomes;
}

int run_defaults() {
  pg_pulse::Worker worker({.once = true});
  worker.handle("no_op", run_one);
  return worker.run();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string kind = argc > 1 ? argv[1] : "";
  if (kind == "defaults") return run_defaults();
  const int most = argc > 2 ? std::atoi(argv[2]) : 500;
  const int threads = argc > 3 ? std::atoi(argv[3]) : 1;
  if ((kind != "single" && kind != "batch") || most < 1 || threads < 1) {
    std::fputs("usage: bench-handlers defaults | single|batch [MOST] [THREADS]\n", stderr);
    return 64;
  }
  pg_pulse::Worker worker({.concurrency = threads, .once = true, .prefetch = most});
  if (kind == "single") {
    worker.handle("no_op", run_one);
  } else {
    worker.handle_batch("no_op", static_cast<std::size_t>(most), run_many);
  }
  return worker.run();
}
