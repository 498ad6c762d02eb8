#include "queue_traffic.hpp"

#include <chrono>
#include <stdexcept>
#include <thread>

#include "proofs.hpp"

namespace bench {
namespace {

constexpr int kLargestClaim = 8;
constexpr int kLongestTaskUs = 2000;

std::int64_t below(std::mt19937* random, int limit) {
  return static_cast<std::int64_t>((*random)() % limit);
}

bool happens(std::mt19937* random, int percent) { return below(random, 100) < percent; }

class Producer {
 public:
  Producer(Traffic* traffic, int seed)
      : traffic_(traffic), random_(seed), session_("producer_" + std::to_string(seed)) {}

  void add_some() {
    if (happens(&random_, 4)) add_and_roll_back();
    add_one();
    if (happens(&random_, 3)) cancel_one();
    if (happens(&random_, 1)) pause_and_resume();
  }

 private:
  std::string any_queue() {
    return traffic_->queue_name(static_cast<int>(below(&random_, kQueues)));
  }

  Rows add() {
    const std::string sql =
        "SELECT id FROM pulse.add_job('no_op', queue_name := $1, priority := $2,"
        " run_at := now() + $3::int * interval '1 ms', job_key := $4)";
    std::int64_t delay_ms = happens(&random_, 10) ? below(&random_, 200) : 0;
    Value key;
    if (happens(&random_, 3)) key = "key " + std::to_string(below(&random_, 20));
    return session_.run(sql, {any_queue(), below(&random_, 3), delay_ms, key});
  }

  void add_one() { traffic_->added(add().number(0, 0)); }

  void add_and_roll_back() {
    session_.run("BEGIN");
    add();
    session_.run("ROLLBACK");
    traffic_->rolled_back++;
  }

  void cancel_one() {
    try {
      session_.run("SELECT pulse.cancel_job($1, 'proof')", {traffic_->random_added(&random_)});
      traffic_->cancelled++;
    } catch (const SqlError& error) {
      if (error.sqlstate() != "PU005") throw;  // completed, and not kept
    }
  }

  void pause_and_resume() {
    std::string queue = any_queue();
    session_.run("SELECT queue_name FROM pulse.pause_queue($1)", {queue});
    std::this_thread::sleep_for(std::chrono::microseconds(below(&random_, kLongestTaskUs)));
    session_.run("SELECT queue_name FROM pulse.resume_queue($1)", {queue});
    traffic_->paused++;
  }

  Traffic* traffic_;
  std::mt19937 random_;
  Session session_;
};

struct Held {
  std::int64_t id;
  std::int64_t token;
  std::string queue;
};

class Claimer {
 public:
  Claimer(Traffic* traffic, int seed)
      : traffic_(traffic),
        random_(seed),
        session_("claimer_" + std::to_string(seed)),
        worker_(register_worker(&session_, "claimer", "no_op")) {}

  void work() {
    if (happens(&random_, 5)) claim_and_roll_back();
    std::vector<Held> held = claim();
    if (held.empty()) {
      session_.run("CALL pulse.wait_for_job($1, '1 s')", {worker_});
      return;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(below(&random_, kLongestTaskUs)));
    if (happens(&random_, 30)) {
      complete_many(held);
      return;
    }
    for (const Held& job : held) end(job);
  }

 private:
  Rows claim_rows() {
    return session_.run("SELECT id, token, queue_name FROM pulse.claim($1, $2)",
                        {worker_, 1 + below(&random_, kLargestClaim)});
  }

  std::vector<Held> claim() {
    Rows rows = claim_rows();
    std::vector<Held> held;
    for (int i = 0; i < rows.count(); i++) {
      held.push_back({rows.number(i, 0), rows.number(i, 1), std::string(rows.text(i, 2))});
      traffic_->start(held.back().queue, held.back().id, held.back().token);
    }
    return held;
  }

  void claim_and_roll_back() {
    session_.run("BEGIN");
    claim_rows();
    session_.run("ROLLBACK");
    traffic_->rolled_back++;
  }

  void complete_many(const std::vector<Held>& held) {
    Ids ids, tokens;
    for (const Held& job : held) {
      ids.push_back(job.id);
      tokens.push_back(job.token);
      traffic_->stop(job.queue);
    }
    while (!ids.empty()) {
      Rows rows =
          session_.run("SELECT id, outcome FROM pulse.complete_many($1, $2)", {ids, tokens});
      Ids busy, busy_tokens;
      for (int i = 0; i < rows.count(); i++) {
        std::string_view outcome = rows.text(i, 1);
        if (outcome == "accepted") {
          traffic_->completed(rows.number(i, 0));
        } else if (outcome == "busy") {
          for (std::size_t k = 0; k < ids.size(); k++)
            if (ids[k] == rows.number(i, 0)) busy_tokens.push_back(tokens[k]);
          busy.push_back(rows.number(i, 0));
        } else {
          traffic_->refused++;
        }
      }
      ids = busy;
      tokens = busy_tokens;
    }
  }

  void end(const Held& job) {
    const Values claim = {job.id, job.token};
    traffic_->stop(job.queue);
    if (happens(&random_, 5)) {
      session_.run("BEGIN");
      session_.run("SELECT pulse.complete($1, $2)", claim);
      session_.run("ROLLBACK");
      traffic_->rolled_back++;
    }
    std::int64_t dice = below(&random_, 100);
    if (dice < 10) {
      session_.run("SELECT pulse.fail($1, $2, 'proof', retry_in := '10 ms')", claim);
      traffic_->failed++;
      traffic_->ended++;
    } else if (dice < 12) {
      session_.run("SELECT pulse.fail($1, $2, 'proof', retry := false)", claim);
      traffic_->failed++;
      traffic_->ended++;
    } else if (dice < 20) {
      release(job);
    } else if (dice < 24) {
      session_.run("SELECT pulse.snooze($1, $2, '10 ms')", claim);
      traffic_->snoozed++;
      traffic_->ended++;
    } else {
      session_.run("SELECT pulse.complete($1, $2)", claim);
      traffic_->completed(job.id);
    }
  }

  void release(const Held& job) {
    std::string outcome = "busy";
    while (outcome == "busy")
      outcome =
          session_.text("SELECT outcome FROM pulse.release($1, $2)", {Ids{job.id}, Ids{job.token}});
    if (outcome != "accepted") traffic_->refused++;
    traffic_->released++;
    traffic_->ended++;
  }

  Traffic* traffic_;
  std::mt19937 random_;
  Session session_;
  std::int64_t worker_;
};

}  // namespace

Traffic::Traffic() {
  // Forty queues keep the default, ten run two or three jobs at a time.
  for (int i = 0; i < kQueues; i++) concurrency_[queue_name(i)] = i < 40 ? 1 : i < 45 ? 2 : 3;
  for (const auto& [queue, most] : concurrency_) occupancy_[queue].most = most;
}

void Traffic::start(const std::string& queue, std::int64_t id, std::int64_t token) {
  Occupancy& place = occupancy_.at(queue);
  if (++place.running > place.most) overlaps++;
  std::lock_guard lock(mutex);
  if (!claims_.emplace(id, token).second) repeats++;
}

void Traffic::stop(const std::string& queue) { --occupancy_.at(queue).running; }

void Traffic::added(std::int64_t id) {
  std::lock_guard lock(mutex);
  added_ids.insert(id);
  recent_.push_back(id);
}

void Traffic::completed(std::int64_t id) {
  std::lock_guard lock(mutex);
  if (!completed_ids.insert(id).second) repeats++;
  ended++;
}

void Traffic::unexpected(const std::string& error) {
  std::lock_guard lock(mutex);
  if (first_error.empty()) first_error = error;
}

std::int64_t Traffic::random_added(std::mt19937* random) {
  constexpr std::size_t kRecent = 500;  // older ones have mostly ended
  std::lock_guard lock(mutex);
  std::size_t among = std::min(kRecent, recent_.size());
  return recent_[recent_.size() - 1 - (*random)() % among];
}

void produce(Traffic* traffic, int seed, int jobs) {
  try {
    Producer producer(traffic, seed);
    for (int i = 0; i < jobs; i++) producer.add_some();
  } catch (const std::exception& error) {
    traffic->unexpected(error.what());
  }
  traffic->producing--;
}

void claim_and_end(Traffic* traffic, int seed) {
  try {
    Claimer claimer(traffic, seed);
    while (!traffic->stop_claiming) claimer.work();
  } catch (const std::exception& error) {
    traffic->unexpected(error.what());
  }
}

}  // namespace bench
