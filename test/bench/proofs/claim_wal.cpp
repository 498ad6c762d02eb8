#include <stdexcept>

#include "proofs.hpp"

namespace bench {
namespace {

constexpr int kQueues = 20000;
constexpr int kMostRecords = 20;
constexpr int kClaims = 200;
constexpr int kMostSweeps = 500;

struct Written {
  std::int64_t records;
  std::int64_t bytes;
  std::string kinds;
};

// Everything between two places of the log but what the server's own processes write on a timer.
Written written_between(Session* session, const std::string& from, const std::string& to) {
  Rows rows = session->run(
      "WITH record AS MATERIALIZED ("
      "  SELECT resource_manager || '/' || record_type AS kind, record_length"
      "    FROM pg_get_wal_records_info($1::pg_lsn, $2::pg_lsn)"
      "   WHERE resource_manager NOT IN ('Standby', 'XLOG')"
      "), kinds AS ("
      "  SELECT string_agg(kind || ' ' || n, ', ' ORDER BY n DESC, kind) AS list"
      "    FROM (SELECT kind, count(*) AS n FROM record GROUP BY kind) AS k"
      ")"
      "SELECT count(*), coalesce(sum(record_length), 0)::bigint,"
      "       coalesce((SELECT list FROM kinds), '') FROM record",
      {from, to});
  return {rows.number(0, 0), rows.number(0, 1), std::string(rows.text(0, 2))};
}

std::string wal_place(Session* session) {
  return session->text("SELECT pg_current_wal_insert_lsn()::text");
}

class Claimer {
 public:
  explicit Claimer(Session* observer)
      : observer_(observer),
        session_("claimer"),
        worker_(register_worker(&session_, "claimer", "no_op")) {
    // The first claim of a session also fills caches and takes a range of the token sequence.
    session_.run("SELECT id FROM pulse.claim($1)", {worker_});
  }

  Written claim() {
    std::string before = wal_place(observer_);
    Rows rows = session_.run("SELECT id, token FROM pulse.claim($1)", {worker_});
    if (rows.count() != 1) throw std::runtime_error("a claim found no job");
    claimed_ = {rows.number(0, 0), rows.number(0, 1)};
    // The log can be read as far as it is flushed.
    std::string after = wal_place(observer_);
    observer_->script("SELECT pg_logical_emit_message(true, 'proof', '')");
    return written_between(observer_, before, after);
  }

  void complete() { session_.run("SELECT pulse.complete($1, $2)", {claimed_[0], claimed_[1]}); }

 private:
  Session* observer_;
  Session session_;
  std::int64_t worker_;
  Ids claimed_;
};

void check_claim(Report* report, const char* when, const Written& written) {
  report->check(written.records <= kMostRecords,
                format("one claim %s: %lld WAL records (at most %d), %lld bytes", when,
                       static_cast<long long>(written.records), kMostRecords,
                       static_cast<long long>(written.bytes)));
  report->note(written.kinds);
}

enum class After { kClaim, kCompletion };

// The worst and the mean of many claims.
void check_claims(Report* report, Claimer* claimer, After after) {
  Written most = {};
  std::int64_t total = 0;
  for (int i = 0; i < kClaims; i++) {
    if (after == After::kCompletion) claimer->complete();
    Written written = claimer->claim();
    total += written.records;
    if (written.records > most.records) most = written;
  }
  report->check(most.records <= kMostRecords,
                format("%d claims, each after a %s: at most %lld WAL records, %.1f on average",
                       kClaims, after == After::kClaim ? "claim" : "completion",
                       static_cast<long long>(most.records), static_cast<double>(total) / kClaims));
  report->note(most.kinds);
}

// Sweeps take the marks that claims have not taken yet, until each queue has given its one place.
void open_every_queue(Session* session) {
  const std::string parked = "SELECT count(*) FROM pulse.job WHERE state = 'parked'";
  for (int i = 0; session->number(parked) > kQueues; i++) {
    if (i == kMostSweeps) throw std::runtime_error("sweeps do not open every queue");
    session->run("SELECT workers_lost FROM pulse.sweep()");
  }
  session->script("VACUUM (ANALYZE) pulse.job");
}

}  // namespace

void prove_claim_wal(Report* report) {
  Session observer("observer");
  observer.script("CREATE EXTENSION pg_walinspect");
  Claimer claimer(&observer);
  const std::string queues = std::to_string(kQueues);
  add_many(&observer, "'no_op', NULL, 'queue ' || i % " + queues + ", NULL, NULL, NULL, NULL, NULL",
           2 * kQueues);
  check_claim(report, "right after 40,000 adds to 20,000 queues", claimer.claim());
  check_claims(report, &claimer, After::kClaim);
  check_claims(report, &claimer, After::kCompletion);
  open_every_queue(&observer);
  check_claim(report, "with a job of each queue open", claimer.claim());
  check_claims(report, &claimer, After::kClaim);
  check_claims(report, &claimer, After::kCompletion);
  check_verify(&observer, report);
}

}  // namespace bench
