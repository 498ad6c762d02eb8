#include <chrono>
#include <functional>
#include <future>
#include <random>
#include <thread>

#include "ledger.hpp"
#include "proofs.hpp"
#include "server.hpp"

namespace bench {
namespace {

constexpr int kKills = 20;
constexpr int kProducers = 3;
constexpr int kClaimers = 3;
constexpr int kBatch = 20;
constexpr int kQueues = 7;
constexpr int kLeastLifeMs = 400;
constexpr int kMoreLifeMs = 800;

// Each order is committed with its job.
const std::string kOrder =
    "WITH added AS (SELECT id FROM pulse.add_job('no_op', queue_name := $1))"
    " INSERT INTO orders (job_id) SELECT id FROM added RETURNING job_id";

// One round of load, from the start of the server to its end.
struct Round {
  Ledger* ledger;
  Retention retention;
};

void produce(const Round& round) {
  Session session("producer");
  for (std::int64_t i = 0;; i++) {
    Value queue;
    if (i % 10 == 0) queue = "queue " + std::to_string(i / 10 % kQueues);
    round.ledger->added(session.number(kOrder, {queue}));
  }
}

int complete(const Round& round, Session* session, const Rows& jobs) {
  Ids ids, tokens;
  std::map<std::int64_t, std::int64_t> token_of;
  for (int i = 0; i < jobs.count(); i++) {
    ids.push_back(jobs.number(i, 0));
    tokens.push_back(jobs.number(i, 1));
    token_of[ids.back()] = tokens.back();
  }
  if (ids.empty()) return 0;
  round.ledger->asked(ids, round.retention);
  Rows outcomes =
      session->run("SELECT id, outcome FROM pulse.complete_many($1, $2)", {ids, tokens});
  for (int i = 0; i < outcomes.count(); i++) {
    std::int64_t id = outcomes.number(i, 0);
    if (outcomes.text(i, 1) == "accepted")
      round.ledger->accepted(id, token_of.at(id), round.retention);
    else
      round.ledger->refused();
  }
  return jobs.count();
}

enum class Until { kServerDies, kNothingReady };

void claim(const Round& round, std::int64_t worker, Until until) {
  Session session("claimer");
  // What a lost reply left to this worker comes first.
  complete(round, &session, session.run("SELECT id, token FROM pulse.held($1)", {worker}));
  for (;;) {
    Rows jobs =
        session.run("SELECT id, token FROM pulse.claim($1, $2)", {worker, std::int64_t{kBatch}});
    if (complete(round, &session, jobs) > 0) continue;
    if (until == Until::kNothingReady) return;
    session.run("CALL pulse.wait_for_job($1, '100 ms')", {worker});
  }
}

// So that some kills fall into a checkpoint.
void checkpoint() {
  Session session("checkpoint");
  for (;;) session.script("CHECKPOINT");
}

void until_server_dies(const std::function<void()>& load) {
  try {
    load();
  } catch (const ConnectionLost&) {
  }
}

void load_and_kill(const Round& round, const std::vector<std::int64_t>& workers, int number,
                   std::mt19937* random, Server* server) {
  std::vector<std::function<void()>> loads;
  for (int i = 0; i < kProducers; i++) loads.emplace_back([&] { produce(round); });
  for (std::int64_t worker : workers)
    loads.emplace_back([&round, worker] { claim(round, worker, Until::kServerDies); });
  if (number % 3 == 0) loads.emplace_back(checkpoint);
  std::vector<std::future<void>> running;
  for (const auto& load : loads)
    running.push_back(std::async(std::launch::async, until_server_dies, load));
  std::this_thread::sleep_for(
      std::chrono::milliseconds(kLeastLifeMs + static_cast<int>((*random)() % kMoreLifeMs)));
  server->kill_all();
  for (auto& each : running) each.get();
}

void set_retention(Session* session, Retention retention) {
  session->script(std::string("ALTER DATABASE postgres SET pulse.keep_completed = ") +
                  (retention == Retention::kKept ? "'1 d'" : "0"));
}

std::set<std::int64_t> ids_of(Session* session, const std::string& sql) {
  Rows rows = session->run(sql);
  std::set<std::int64_t> ids;
  for (int i = 0; i < rows.count(); i++) ids.insert(rows.number(i, 0));
  return ids;
}

Stored read_stored(Session* session) {
  Stored stored = {ids_of(session, "SELECT id FROM pulse.job"),
                   ids_of(session, "SELECT id FROM pulse.finished_job"),
                   {},
                   ids_of(session, "SELECT job_id FROM orders")};
  Rows kept = session->run("SELECT id, token FROM pulse.finished_job WHERE state = 'completed'");
  for (int i = 0; i < kept.count(); i++)
    stored.completed_tokens[kept.number(i, 0)] = kept.number(i, 1);
  return stored;
}

struct Findings {
  std::size_t lost = 0;
  std::size_t undone = 0;
  std::int64_t broken = 0;
};

void compare(const Ledger& ledger, Session* session, Findings* findings) {
  Stored stored = read_stored(session);
  findings->lost += ledger.lost(stored).size();
  findings->undone += ledger.undone(stored).size();
  findings->broken += session->number("SELECT count(*) FROM pulse.verify()");
}

std::vector<std::int64_t> given_workers(Session* session) {
  std::vector<std::int64_t> workers;
  for (int i = 0; i < kClaimers; i++)
    workers.push_back(register_worker(session, "claimer", "no_op"));
  return workers;
}

}  // namespace

void prove_server_kills(Report* report, const std::vector<std::string>& restart_command) {
  auto session = std::make_unique<Session>("proof");
  session->script("CREATE TABLE orders (job_id bigint PRIMARY KEY)");
  Server server(session.get(), restart_command);
  std::vector<std::int64_t> workers = given_workers(session.get());
  std::mt19937 random(20);
  Ledger ledger;
  Findings findings;
  int idle_rounds = 0;
  for (int i = 0; i < kKills; i++) {
    Retention retention = i % 2 ? Retention::kKept : Retention::kNone;
    set_retention(session.get(), retention);
    session.reset();
    std::int64_t adds = ledger.adds(), completions = ledger.completions();
    load_and_kill({&ledger, retention}, workers, i, &random, &server);
    idle_rounds += ledger.adds() == adds || ledger.completions() == completions;
    server.restart();
    session = std::make_unique<Session>("proof");
    compare(ledger, session.get(), &findings);
  }
  for (std::int64_t worker : workers)
    claim({&ledger, Retention::kKept}, worker, Until::kNothingReady);
  compare(ledger, session.get(), &findings);

  report->note(format("%d kills; %lld adds acknowledged, %lld completions accepted", kKills,
                      static_cast<long long>(ledger.adds()),
                      static_cast<long long>(ledger.completions())));
  report->check(idle_rounds == 0, "every kill came under load");
  report->check(findings.lost == 0,
                format("adds that are neither live nor finished after a kill: %zu", findings.lost));
  report->check(findings.undone == 0,
                format("accepted completions that were undone: %zu", findings.undone));
  report->check(
      ledger.twice() == 0 && ledger.refusals() == 0,
      format("completions accepted twice: %lld, refused: %lld",
             static_cast<long long>(ledger.twice()), static_cast<long long>(ledger.refusals())));
  std::int64_t left = session->number("SELECT count(*) FROM pulse.job");
  report->check(left == 0,
                format("jobs left when nothing is ready: %lld", static_cast<long long>(left)));
  report->check(findings.broken == 0, "verify() was empty after each restart and at the end");
}

}  // namespace bench
