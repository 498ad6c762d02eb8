// bench-pgq: one consumer of PgQ takes events that do nothing until no batch is left. Prints what
// was done as a line of JSON.
#include <cstdio>
#include <exception>
#include <stdexcept>

#include "session.hpp"

namespace {

const std::string kNext = "SELECT pgq.next_batch('no_op', 'bench')";
const std::string kEvents = "SELECT ev_id, ev_type, ev_data FROM pgq.get_batch_events($1)";
const std::string kFinish = "SELECT pgq.finish_batch($1)";

struct Consumed {
  long long jobs = 0;
  long long batches = 0;
  long long payload_bytes = 0;
};

// The events of a batch and its end are one round trip and one transaction.
Consumed consume() {
  bench::Session session("bench-pgq");
  for (const std::string& sql : {kNext, kEvents, kFinish}) session.prepare(sql);
  Consumed total;
  for (;;) {
    bench::Rows next = session.run(kNext);
    if (next.is_null(0, 0)) return total;
    bench::Values batch = {next.number(0, 0)};
    session.start_pipeline();
    session.send(kEvents, batch);
    session.send(kFinish, batch);
    session.flush();
    bench::Rows events = session.next_rows();
    for (int i = 0; i < events.count(); i++)
      total.payload_bytes += static_cast<long long>(events.text(i, 2).size());
    if (session.next_rows().number(0, 0) != 1) throw std::runtime_error("a batch did not end");
    session.end_of_flush();
    session.stop_pipeline();
    total.jobs += events.count();
    total.batches++;
  }
}

}  // namespace

int main() {
  try {
    Consumed total = consume();
    std::printf("{\"jobs\": %lld, \"batches\": %lld, \"payload_bytes\": %lld}\n", total.jobs,
                total.batches, total.payload_bytes);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench-pgq: %s\n", error.what());
    return 1;
  }
  return 0;
}
