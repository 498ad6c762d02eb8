#include "worker_group.hpp"

#include <algorithm>
#include <utility>

namespace pulse {

WorkerGroup::WorkerGroup(Kind kind, bool once, MakeMember make, Timers& timers, Log& log)
    : kind_(kind),
      once_(once),
      make_(std::move(make)),
      timers_(timers),
      log_(log),
      tidying_(timers, [this] { tidy(); }) {}

void WorkerGroup::serve(std::vector<std::string> tasks) {
  tasks_ = std::move(tasks);
  for (const auto& entry : entries_) {
    if (entry->state == State::running) entry->member->worker().serve(tasks_);
  }
}

void WorkerGroup::load_crontab(std::string name, CrontabItems items) {
  crontab_ = {std::move(name), std::move(items)};
  for (const auto& entry : entries_) load_crontab(*entry);
}

void WorkerGroup::load_crontab(const Entry& entry) const {
  const bool is_here = crontab_ && crontab_->database == entry.database.name;
  if (!is_here || entry.state != State::running || entry.is_leaving) return;
  entry.member->worker().load_crontab(crontab_->items);
}

// The new databases come first, so that the process does not end for want of any.
void WorkerGroup::serve_databases(const std::vector<NamedDatabase>& databases) {
  if (is_stopping_ || has_finished_) return;
  for (const auto& entry : entries_) {
    const auto same = std::find(databases.begin(), databases.end(), entry->database);
    if (same == databases.end()) entry->is_leaving = true;
  }
  for (const NamedDatabase& database : databases) {
    if (has(database)) continue;
    entries_.push_back(
        std::make_unique<Entry>(database, timers_, [this](Entry& entry) { start(entry); }));
    if (has_started_) start(*entries_.back());
  }
  for (const auto& entry : entries_) {
    if (entry->is_leaving) leave(*entry);
  }
}

bool WorkerGroup::has(const NamedDatabase& database) const {
  return std::any_of(entries_.begin(), entries_.end(), [&](const auto& entry) {
    return !entry->is_leaving && entry->database == database;
  });
}

// The node has another address, and so the name another entry.
bool WorkerGroup::is_replaced(const Entry& entry) const {
  return entry.is_leaving && std::any_of(entries_.begin(), entries_.end(), [&](const auto& each) {
           return !each->is_leaving && each->database.name == entry.database.name;
         });
}

void WorkerGroup::leave(Entry& entry) {
  entry.retry.stop();
  if (entry.state != State::running) return tidying_.start_soon();
  if (entry.member->worker().is_draining()) return;
  entry.member->worker().drain_within_grace("its node has left the cluster");
}

void WorkerGroup::start() {
  has_started_ = true;
  for (const auto& entry : entries_) {
    if (!entry->is_leaving) start(*entry);
  }
}

void WorkerGroup::start(Entry& entry) {
  entry.member = make_(entry.database);
  entry.state = State::running;
  Worker& worker = entry.member->worker();
  worker.on_finished = [this, &entry](ExitCode code) { take_end(entry, code); };
  if (kind_ != Kind::one_database) {
    worker.on_identity = [this, &entry](const std::string& identity) {
      take_identity(entry, identity);
    };
    worker.on_exhausted = [this, &entry] { take_exhaustion(entry); };
    worker.on_draining = [this] { check_draining(); };
  }
  worker.serve(tasks_);
  load_crontab(entry);
  worker.start();
}

// One database under two names would get each beat twice, and its jobs two parts of the slots. A
// server that takes the place of a node may have the identity of the server before.
void WorkerGroup::take_identity(Entry& entry, const std::string& identity) {
  entry.identity = identity;
  if (identity.empty() || entry.is_leaving) return;
  std::string names;
  int count = 0;
  for (const auto& each : entries_) {
    if (each->identity != identity || each->is_leaving) continue;
    names += (count++ == 0 ? "'" : " and '") + each->database.name + '\'';
  }
  if (count == 1) return;
  const std::string problem =
      names + " are one database (system identifier and oid " + identity + ")";
  Worker& worker = entry.member->worker();
  if (kind_ == Kind::cluster) {
    entry.identity.clear();
    return worker.refuse(ExitCode::configuration,
                         "--cluster: " + problem +
                             ": from here the addresses of both nodes lead "
                             "to one server; citus_update_node gives a node another address");
  }
  worker.refuse(ExitCode::usage, "--database: " + problem + "; give each database once");
}

void WorkerGroup::take_exhaustion(Entry& entry) {
  entry.is_exhausted = true;
  check_exhausted();
}

// Jobs that any worker has claimed since may have added jobs where nothing was ready.
void WorkerGroup::check_exhausted() {
  std::size_t claims = 0;
  for (const auto& entry : entries_) {
    if (entry->state != State::running) continue;
    if (!entry->is_exhausted) return;
    claims += entry->member->worker().claims();
  }
  const bool is_over = std::exchange(known_claims_, claims) == claims;
  for (const auto& entry : entries_) {
    if (entry->state != State::running) continue;
    entry->is_exhausted = is_over;
    is_over ? entry->member->worker().end_exhausted() : entry->member->worker().ask_again();
  }
}

void WorkerGroup::take_end(Entry& entry, ExitCode code) {
  const bool is_refusal = code == ExitCode::database_gone || code == ExitCode::configuration;
  entry.code = entry.is_leaving && is_refusal ? ExitCode::drained : code;
  const bool is_tried_again = is_refusal && !is_stopping_ && !once_ && !entry.is_leaving;
  entry.state = is_tried_again ? State::refused : State::ended;
  if (entry.state == State::refused && count(State::running) > 0) {
    log_.info("retrying", {{"database", entry.database.name}, {"delay_ms", entry.pause.count()}});
    entry.retry.start_in(entry.pause);
    entry.pause = std::min(entry.pause * 2, kLastRetry);
  }
  // A mistake of the command line concerns the process: the other databases are drained.
  if (code == ExitCode::usage) take_signal();
  if (count(State::running) == 0) return finish();
  tidying_.start_soon();
}

void WorkerGroup::finish() {
  for (const auto& each : entries_) each->retry.stop();
  if (!std::exchange(has_finished_, true)) on_finished(exit_code());
}

void WorkerGroup::tidy() {
  for (const auto& entry : entries_) {
    if (entry->state != State::running) entry->member.reset();
  }
  std::erase_if(entries_, [](const auto& entry) {
    return entry->is_leaving && entry->state != State::running;
  });
  if (once_ && !is_stopping_) check_exhausted();
  check_draining();
}

void WorkerGroup::check_draining() {
  const bool is_over = std::all_of(entries_.begin(), entries_.end(), [this](const auto& entry) {
    if (entry->state == State::running) return entry->member->worker().is_draining();
    return entry->state == State::ended || is_stopping_;
  });
  if (is_over && !std::exchange(is_drained_, true) && on_draining) on_draining();
}

void WorkerGroup::take_signal() {
  is_stopping_ = true;
  for (const auto& entry : entries_) {
    entry->retry.stop();
    if (entry->state == State::running) entry->member->worker().take_signal();
  }
  if (count(State::running) == 0) finish();
}

void WorkerGroup::drain_within_grace(const char* why) {
  is_stopping_ = true;
  for (const auto& entry : entries_) {
    entry->retry.stop();
    if (entry->state == State::running) entry->member->worker().drain_within_grace(why);
  }
  if (count(State::running) == 0) finish();
}

std::vector<std::string> WorkerGroup::names() const {
  std::vector<std::string> names;
  for (const auto& entry : entries_) {
    if (!entry->is_leaving) names.push_back(entry->database.name);
  }
  return names;
}

void WorkerGroup::tell_running() const {
  for (const auto& entry : entries_) {
    if (entry->state == State::running) entry->member->worker().tell_running();
  }
}

std::size_t WorkerGroup::count(State state) const {
  return static_cast<std::size_t>(
      std::count_if(entries_.begin(), entries_.end(),
                    [state](const auto& entry) { return entry->state == state; }));
}

// A service manager does not start a process again after `usage` and `configuration`: so a refusal
// that may pass decides over one that stays.
ExitCode WorkerGroup::exit_code() const {
  for (const ExitCode code : {ExitCode::usage, ExitCode::forced, ExitCode::exhausted,
                              ExitCode::database_gone, ExitCode::configuration}) {
    const bool is_there = std::any_of(entries_.begin(), entries_.end(), [&](const auto& entry) {
      // A stop does not wait for a database that was refused before.
      return entry->code == code && !(is_stopping_ && entry->state == State::refused);
    });
    if (is_there) return code;
  }
  return ExitCode::drained;
}

WorkerState WorkerGroup::state() const {
  if (kind_ == Kind::one_database) {
    return entries_[0]->member ? entries_[0]->member->worker().state() : WorkerState{};
  }
  WorkerState all;
  all.is_draining = is_stopping_ || !entries_.empty();
  for (const auto& entry : entries_) {
    WorkerState one;
    if (entry->state == State::running) one = entry->member->worker().state();
    one.database = entry->database.name;
    all.is_established = all.is_established || one.is_established;
    all.is_draining = all.is_draining && (one.is_draining || is_stopping_);
    all.running += one.running;
    all.prefetched += one.prefetched;
    all.held += one.held;
    all.concurrency = std::max(all.concurrency, one.concurrency);
    if (!is_replaced(*entry)) all.databases.push_back(std::move(one));
  }
  return all;
}

}  // namespace pulse
