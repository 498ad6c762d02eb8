// bench-lateness JOBS: a worker that waits for jobs of schedules, until it has had so many. Prints
// of each the milliseconds from its due time to its start, the return of the claim that has it.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <vector>

#include "session.hpp"

namespace {

constexpr std::int64_t kBatch = 100;

// Both clocks are the machine's: the due time is of the server, beside which this runs.
double ms_since(std::int64_t due_us) {
  using std::chrono::microseconds;
  auto now = std::chrono::system_clock::now().time_since_epoch();
  auto now_us = std::chrono::duration_cast<microseconds>(now).count();
  return static_cast<double>(now_us - due_us) / 1000;
}

void run(int count) {
  bench::Session session("lateness_worker");
  std::int64_t worker = session.number("SELECT id FROM pulse.register_worker('lateness')");
  std::vector<double> lateness;
  while (static_cast<int>(lateness.size()) < count) {
    bench::Rows jobs = session.run(
        "SELECT id, token, (extract(epoch FROM scheduled_for) * 1000000)::bigint"
        "  FROM pulse.claim($1, $2)",
        {worker, kBatch});
    if (jobs.count() == 0) {
      session.run("CALL pulse.wait_for_job($1)", {worker});
      continue;
    }
    bench::Ids ids;
    bench::Ids tokens;
    for (int i = 0; i < jobs.count(); i++) {
      lateness.push_back(ms_since(jobs.number(i, 2)));
      ids.push_back(jobs.number(i, 0));
      tokens.push_back(jobs.number(i, 1));
    }
    session.run("SELECT count(*) FROM pulse.complete_many($1, $2)", {ids, tokens});
  }
  for (double ms : lateness) std::printf("%.3f\n", ms);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(argc > 1 ? std::atoi(argv[1]) : 1000);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench-lateness: %s\n", error.what());
    return 1;
  }
  return 0;
}
