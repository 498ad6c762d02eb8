// Worker group: the workers of one process, one for each database: starts them, tries a refused
// database again, and knows when the process ends.
//
// A refused database waits for another try while any other database is served. With --once no
// database is tried again, and a database without a ready job waits until no other database has
// one: a job of one database may add a job to another.
//
// The databases of a cluster change while the process runs: a new database gets a worker, the
// worker of a database that is gone drains, and the other workers notice nothing.
//
// Invariants (only the loop's thread reads and writes):
// - An entry is `running` exactly while its member exists and has not finished. A member is
//   destroyed in a later iteration of the loop than the one in which the member finishes.
// - No worker is started once `is_stopping_` is set or the group has finished.
// - An entry that `is_leaving` is started no more, and is removed once it does not run. Of the
//   other entries each has a name of its own.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/postgres/connection_options.hpp"
#include "worker.hpp"

namespace pulse {

class WorkerGroup {
 public:
  static constexpr Duration kFirstRetry = std::chrono::seconds(5);
  static constexpr Duration kLastRetry = std::chrono::minutes(1);

  // A worker with everything that only this worker uses.
  class Member {
   public:
    virtual ~Member() = default;
    virtual Worker& worker() = 0;
  };
  using MakeMember = std::function<std::unique_ptr<Member>(const NamedDatabase& database)>;

  enum class Kind {
    one_database,  // as a worker that knows of one database only
    several,       // as the command line says
    cluster,       // as the cluster's list of nodes says, which may change
  };

  // `make` makes the worker of a database anew.
  WorkerGroup(Kind kind, bool once, MakeMember make, Timers& timers, Log& log);
  WorkerGroup(const WorkerGroup&) = delete;
  WorkerGroup& operator=(const WorkerGroup&) = delete;

  // As the functions of Worker, for each worker.
  void serve(std::vector<std::string> tasks);
  void take_signal();
  void drain_within_grace(const char* why);
  void tell_running() const;
  // The schedules of the database of this name from now on.
  void load_crontab(std::string name, CrontabItems items);
  // From now on exactly these databases. A database with other options than before has another
  // worker.
  void serve_databases(const std::vector<NamedDatabase>& databases);
  void start();

  // Of the databases that are served, or tried again.
  std::vector<std::string> names() const;

  // Of all workers together.
  WorkerState state() const;

  // Each worker drains, or has finished.
  std::function<void()> on_draining;
  // Each worker has finished, and none is tried again.
  std::function<void(ExitCode)> on_finished;

 private:
  enum class State { running, refused, ended };
  struct Entry {
    Entry(NamedDatabase database, Timers& timers, std::function<void(Entry&)> try_again)
        : database(std::move(database)),
          retry(timers, [this, try_again = std::move(try_again)] { try_again(*this); }) {}

    const NamedDatabase database;
    std::unique_ptr<Member> member;
    State state = State::ended;
    ExitCode code = ExitCode::drained;
    std::string identity;
    bool is_leaving = false;
    bool is_exhausted = false;
    Duration pause = kFirstRetry;
    Timer retry;
  };
  struct Crontab {
    std::string database;
    CrontabItems items;
  };

  void start(Entry& entry);
  void leave(Entry& entry);
  bool has(const NamedDatabase& database) const;
  bool is_replaced(const Entry& entry) const;
  void load_crontab(const Entry& entry) const;
  void take_identity(Entry& entry, const std::string& identity);
  void take_exhaustion(Entry& entry);
  void check_exhausted();
  void take_end(Entry& entry, ExitCode code);
  void finish();
  void tidy();
  void check_draining();
  std::size_t count(State state) const;
  ExitCode exit_code() const;

  const Kind kind_;
  const bool once_;
  const MakeMember make_;
  Timers& timers_;
  Log& log_;
  std::vector<std::unique_ptr<Entry>> entries_;
  std::vector<std::string> tasks_;
  std::optional<Crontab> crontab_;
  std::size_t known_claims_ = 0;  // of all workers, when each was last asked under --once
  bool has_started_ = false;
  bool is_stopping_ = false;
  bool is_drained_ = false;  // on_draining has come
  bool has_finished_ = false;
  Timer tidying_;
};

}  // namespace pulse
